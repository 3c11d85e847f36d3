"""``rpc.Buffer``: ranges of one worker's memory that others read and write, on one machine and by messages."""

import itertools
import pickle
import random
import signal
import socket
import threading

import numpy as np
import pytest
import telegrad as tg
from helpers.lanes import grpc, in_process, tcp, unix
from helpers.threads import until
from telegrad import rpc
from telegrad.base.errors import RpcError, RpcTimeoutError, WorkerLostError
from telegrad.core.futures import Future
from telegrad.rpc.buffers import pieces
from telegrad.rpc.buffers.memory import map_memory, new_memory
from telegrad.rpc.buffers.owned import OwnedBuffers
from telegrad.rpc.buffers.written_range import written_range
from telegrad.rpc.calls.caller import Caller
from telegrad.rpc.lanes.large.landing import Landing
from telegrad.rpc.lanes.stream_socket import PlainSocket
from telegrad.rpc.wire.frames import encode
from telegrad.rpc.wire.messages import Method, Outgoing
from telegrad.rpc.wire.payload import no_labels, pack_pickled
from telegrad.testing import in_process_cluster

MAPPED, SENT = None, ["tcp"]  # lanes that were chosen: without those of one machine, nothing is mapped
KEPT = {}


def keep(values):
    KEPT["buffer"] = rpc.Buffer(values)
    return KEPT["buffer"]


def values_there():
    return KEPT["buffer"].tensor.clone()


def free_there():
    KEPT["buffer"].free()


def is_its_owners(buffer):
    return buffer.tensor.tolist()


@pytest.fixture(params=[(in_process, MAPPED), (unix, MAPPED), (in_process, SENT), (tcp, SENT), (grpc, SENT)])
def cluster(request, tmp_path, monkeypatch):
    """Agents a, b and c; a is the current one. Pieces are small, so that a range has many."""
    make_lane, lanes = request.param
    monkeypatch.setattr(pieces, "RANGE_PIECE_BYTES", 100_000)
    options = rpc.GrpcRpcBackendOptions(lanes=lanes)
    with in_process_cluster("a", "b", "c", make_lane=make_lane(tmp_path), options=options) as agents, agents[0].use():
        yield agents
    KEPT.clear()


@pytest.mark.parametrize("dtype", [tg.float32, tg.int8, tg.bool, tg.complex64, tg.bfloat16])
def test_all_values_are_read_and_written(cluster, dtype):
    values = (tg.arange(700_000) % 2).reshape(7, -1).to(dtype)
    buffer = rpc.rpc_sync("b", keep, args=(values,))
    assert (buffer.owner.name, buffer.nbytes) == ("b", values.numel() * values.element_size())
    assert repr(buffer).startswith("Buffer(0 of 'b', ") and tg.equal(buffer.read(), values)
    out = tg.zeros_like(values)
    assert buffer.read_into_async(out).wait() is None and tg.equal(out, values)
    buffer.write_from(tg.zeros_like(values))
    assert not rpc.rpc_sync("b", values_there).to(tg.bool).any()
    buffer.write_from_async(values).wait()
    assert tg.equal(rpc.rpc_sync("b", values_there), values)


def test_ranges(cluster):
    model = np.random.default_rng(0).integers(0, 255, 500_000).astype(np.uint8)
    buffer = rpc.rpc_sync("b", keep, args=(model,))
    draw = random.Random(1)
    for _ in range(30):
        start = draw.randrange(len(model) + 1)
        part = model[start : start + draw.choice([0, 1, 5000, 300_000])]
        out = np.zeros_like(part)
        buffer.read_into(out, offset=start)
        assert np.array_equal(out, part)
        part += 1
        buffer.write_from(part, offset=start)
    assert np.array_equal(buffer.read().numpy(), model)


def test_it_goes_on_to_others_and_back_to_its_owner(cluster):
    buffer = rpc.rpc_sync("b", keep, args=(tg.ones(3),))
    assert rpc.rpc_sync("c", rpc.Buffer.read, args=(buffer,)).tolist() == [1, 1, 1]
    assert rpc.rpc_sync("b", is_its_owners, args=(buffer,)) == [1, 1, 1]
    with pytest.raises(RpcError, match="has its tensor at its owner; use read"):
        buffer.tensor  # noqa: B018


def test_what_the_owner_writes_is_read(cluster):
    with rpc.Buffer(8) as buffer:
        assert buffer.read().tolist() == [0] * 8
        buffer.tensor.add_(3)
        assert rpc.rpc_sync("b", rpc.Buffer.read, args=(buffer,)).tolist() == [3] * 8
        kept = buffer.tensor
    assert kept.tolist() == [3] * 8  # the memory stays while something refers to it
    with pytest.raises(RpcError, match=r"buffer 0 of worker 'a' was freed"):
        buffer.tensor  # noqa: B018


@pytest.mark.parametrize("used_before", [True, False])
def test_a_freed_buffer_is_named(cluster, used_before):
    buffer = rpc.rpc_sync("b", keep, args=(tg.ones(300_000),))
    if used_before:
        buffer.read()
    rpc.rpc_sync("b", free_there)
    for use in (buffer.read, lambda: buffer.write_from(tg.zeros(2)), lambda: buffer.read_into_async(tg.ones(2)).wait()):
        with pytest.raises(RpcError, match=r"buffer 0 of worker 'b' was freed"):
            use()
    with pytest.raises(RpcError, match=r"buffer 0 of worker 'b' was freed"):
        rpc.rpc_sync("b", is_its_owners, args=(buffer,))


def test_bad_input(cluster):
    buffer, out = rpc.rpc_sync("b", keep, args=(tg.ones(10),)), tg.zeros(10)
    for error, text, use in [
        (TypeError, "data must be a dense tensor or an array of numbers; you gave str", lambda: rpc.Buffer("x")),
        (TypeError, "you gave bool", lambda: rpc.Buffer(True)),
        (TypeError, "you gave an array of object", lambda: rpc.Buffer(np.array([None]))),
        (TypeError, "you gave an array of <U1", lambda: rpc.Buffer(np.array(["a"]))),
        (ValueError, "data must be a number of bytes, 0 or more, or a tensor; you gave -1", lambda: rpc.Buffer(-1)),
        (MemoryError, "larger than this machine's memory", lambda: rpc.Buffer(1 << 60)),
        (TypeError, "out must be a dense tensor", lambda: buffer.read_into([1.0])),
        (ValueError, "out must lie in one piece of memory", lambda: buffer.read_into(out[::2])),
        (ValueError, "out must be writable", lambda: buffer.read_into(np.broadcast_to(np.zeros(1), (1,)))),
        (ValueError, "40 bytes from offset 4 is not in Buffer", lambda: buffer.read_into(out, offset=4)),
        (ValueError, "from offset -1 is not in", lambda: buffer.write_from(out[:1], offset=-1)),
        (TypeError, "offset must be a number of bytes; you gave 0.5", lambda: buffer.write_from(out, offset=0.5)),
        (TypeError, "timeout must be a number of seconds", lambda: buffer.read(timeout="soon")),
        (TypeError, "timeout must be a number of seconds", lambda: buffer.write_from_async(out, timeout="soon")),
        (RpcError, "is freed by its owner; ask it to, by a call", buffer.free),
    ]:
        with pytest.raises(error, match=text):
            use()


def test_a_lost_owner_is_named(cluster):
    buffer = rpc.rpc_sync("b", keep, args=(tg.ones(10),))
    buffer.read()
    cluster[1].close("it was killed", farewell=False)
    with pytest.raises(RpcError, match=r"worker 'b'"):
        buffer.read()
    until(lambda: cluster[0].peers.at(1).gone)
    with pytest.raises(WorkerLostError, match="worker 'b'"):
        buffer.write_from(tg.zeros(1))


def test_an_owner_that_computes_is_stopped_and_is_killed(forked_job):
    running = forked_job("shared_buffer", 2, [])
    running.wait(codes=[0, -signal.SIGKILL])
    assert "worker 'worker1'" in running.output(0) and "over" in running.output(0), running.outputs()


def test_a_timeout_is_told_as_it_was_given(cluster):
    buffer = rpc.rpc_sync("b", keep, args=(tg.ones(10),))
    cluster[1].server.serve(Method.READ, lambda call: call.park(), quick=True)  # it never answers
    if buffer._mapped() is None:
        with pytest.raises(RpcTimeoutError, match=r"the read of Buffer\(0 of 'b', .*\) got no answer within 0.1 s"):
            buffer.read(timeout=0.1)


# -- the memory


def test_memory_of_another_machine_is_not_mapped():
    memory = new_memory(100)
    place = memory.place()
    mapped = map_memory(place, 100)
    assert mapped is not memory and map_memory(place, 100) is mapped  # once
    memory.content[:] = 5
    assert (mapped.content == 5).all() and not mapped.freed
    assert map_memory(place._replace(mark=b"x" * 16), 100) is None
    other = place._replace(mark=b"y" * 16, address=place.address._replace(process=2**22))
    assert map_memory(other, 100) is None and map_memory(pickle.loads(pickle.dumps(place)), 100) is mapped
    memory.free()
    assert mapped.freed and memory.freed


def test_memory_that_one_thread_drops_while_another_maps_it_has_a_living_owner():
    memory, found = new_memory(100), []
    place = memory.place()

    def map_and_drop():
        found.extend([map_memory(place, 100).owner_ended for _ in range(300)])

    threads = [threading.Thread(target=map_and_drop) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert found == [False] * 1200
    memory.free()


# -- pieces


def at_once(task):
    task()


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_pieces_arrive_in_any_order(order, monkeypatch):
    monkeypatch.setattr(pieces, "RANGE_PIECE_BYTES", 10)
    monkeypatch.setattr(pieces, "AT_A_TIME", 4)
    asked, taken = [], []

    def ask(start, end):
        asked.append(((start, end), Future()))
        return asked[-1][1]

    over = pieces.Pieces(65, ask, lambda *piece: taken.append(piece), print, at_once).begin()
    assert len(asked) == pieces.AT_A_TIME
    for place in order:
        asked[place][1].set_result(place)
    for place in range(4, 7):
        assert not over.done()
        asked[place][1].set_result(place)
    assert over.done() and sorted(taken) == [(s, min(s + 10, 65), s // 10) for s in range(0, 65, 10)]


def test_the_first_error_ends_it_and_nothing_is_taken_after_it(monkeypatch):
    monkeypatch.setattr(pieces, "RANGE_PIECE_BYTES", 10)
    monkeypatch.setattr(pieces, "AT_A_TIME", 4)
    asked, taken, given_up = [], [], []

    def ask(start, end):
        if start >= 40:
            raise RuntimeError("it closed")
        asked.append(Future())
        return asked[-1]

    over = pieces.Pieces(65, ask, lambda *piece: taken.append(piece), given_up.append, at_once).begin()
    asked[1].set_result(None)
    assert isinstance(over.exception(), RuntimeError) and taken == [(10, 20, None)]
    asked[0].set_result(None)
    asked[2].set_exception(ValueError("late"))
    assert len(taken) == 1 and len(asked) == 4 and given_up == [asked[0], asked[2], asked[3]]
    assert pieces.Pieces(0, ask, print, print, at_once).begin().done()


# -- answers that are received into the caller's array


def test_what_is_read_over_a_socket_is_received_into_the_array(tmp_path, monkeypatch):
    landed, find = [], Caller.landing
    monkeypatch.setattr(Caller, "landing", lambda self, *arrival: landed.append(find(self, *arrival)) or landed[-1])
    monkeypatch.setattr(pieces, "RANGE_PIECE_BYTES", 1 << 20)
    options = rpc.GrpcRpcBackendOptions(lanes=SENT)
    with in_process_cluster("a", "b", make_lane=tcp(tmp_path), options=options) as agents, agents[0].use():
        buffer, out = rpc.rpc_sync("b", keep, args=(tg.arange(700_000),)), np.zeros(700_000, np.int64)
        buffer.read_into(out)
        assert np.array_equal(out, np.arange(700_000))
        assert len(landed) == 6 and all(np.shares_memory(landing.memory, out) for landing in landed)
        values = rpc.rpc_sync("b", values_there)  # no such memory was given for this
        assert landed[6:] == [None] and np.array_equal(values.numpy(), out)
    KEPT.clear()


def test_what_is_written_over_a_socket_is_received_into_the_buffer(tmp_path, monkeypatch):
    landed, place = [], OwnedBuffers._place
    monkeypatch.setattr(
        OwnedBuffers, "_place", lambda self, *arrival: landed.append(place(self, *arrival)) or landed[-1]
    )
    monkeypatch.setattr(pieces, "RANGE_PIECE_BYTES", 1 << 20)
    options = rpc.GrpcRpcBackendOptions(lanes=SENT)
    with in_process_cluster("a", "b", make_lane=tcp(tmp_path), options=options) as agents, agents[0].use():
        buffer = rpc.rpc_sync("b", keep, args=(tg.zeros(700_000, dtype=tg.int64),))
        buffer.write_from(np.arange(600_000), offset=800_000)
        assert len(landed) == 5 and all(np.shares_memory(each.memory, KEPT["buffer"].tensor.numpy()) for each in landed)
        assert buffer.read().tolist() == [0] * 100_000 + list(range(600_000))
        rpc.rpc_sync("b", rpc.Buffer.seal, args=(buffer,))
        with pytest.raises(RpcError, match="is sealed"):
            buffer.write_from(np.ones(600_000))
        assert landed[5:] and not any(landed[5:]) and buffer.read()[-1] == 599_999
    KEPT.clear()


@pytest.mark.parametrize("body", [(1, 2, 3), (1, 2, "3", tg.ones(9)), [1, 2, 3, tg.ones(9)], (True, 2, 3, tg.ones(9))])
def test_a_range_is_read_from_a_frame_that_has_one(body):
    assert written_range(memoryview(frame_of((4, 8, 44, tg.ones(9))))) == (4, 8, 44)
    assert written_range(memoryview(frame_of(body))) is None
    assert written_range(memoryview(b"")) is None and written_range(memoryview(frame_of(body))[:40]) is None


def test_a_budget_does_not_count_what_lands(tmp_path):
    options = rpc.GrpcRpcBackendOptions(lanes=SENT, memory_budget=1)
    with in_process_cluster("a", "b", make_lane=tcp(tmp_path), options=options) as agents, agents[0].use():
        buffer = rpc.rpc_sync("b", keep, args=(700_000,))
        buffer.write_from(np.ones(700_000, np.uint8))
        assert buffer.read().sum().item() == 700_000
        rpc.rpc_sync("b", rpc.Buffer.seal, args=(buffer,))
        assert buffer.fetch().sum().item() == 700_000
    KEPT.clear()


def frame_of(body):
    message = Outgoing(Method.WRITE, 1, 0.0, 1)
    pack_pickled(message, body, (), True, no_labels, 1 << 20)
    return b"".join(map(bytes, encode(message)))


def test_nothing_lands_after_it_was_withdrawn():
    near, far = map(PlainSocket.of, socket.socketpair())
    with near, far:
        memory = memoryview(bytearray(8))
        landing = Landing(memory)
        near.sendall(b"abcdefgh")
        assert landing.receive(far, memory[:3]) == 3
        landing.withdraw()
        assert landing.receive(far, memory[3:]) == 5
        assert bytes(memory) == b"abc\0\0\0\0\0"


def test_reads_and_writes_wait_for_no_window_and_take_no_room_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "RANGE_PIECE_BYTES", 100_000)
    options = rpc.GrpcRpcBackendOptions(lanes=SENT, window_bytes=1, window_messages=1)
    with in_process_cluster("a", "b", make_lane=tcp(tmp_path), options=options) as agents, agents[0].use():
        buffer = rpc.rpc_sync("b", keep, args=(700_000,))
        session = agents[0].peers.at(1).link.dialed
        before = session.flow.traffic()
        buffer.write_from(np.ones(700_000, np.uint8))
        assert buffer.read().sum().item() == 700_000
        assert all(now.bytes - was.bytes < 1000 for was, now in zip(before, session.flow.traffic()))  # answers of None
    KEPT.clear()
