"""Calls on meshes: every worker runs the function once, arguments are pickled once, failed workers are errors by name."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import telegrad as tg
from helpers.gates import GATE, hold
from helpers.lanes import grpc, in_process, unix
from helpers.mesh_workers import NAMES, rank, where
from helpers.threads import until
from telegrad import rpc
from telegrad.base.errors import (
    ArgumentIndexError,
    ArgumentKindError,
    ArgumentTypeError,
    ArgumentValueError,
    RpcCancelledError,
    RpcTimeoutError,
    UnknownWorkerError,
    WorkerLostError,
)
from telegrad.rpc.calls.caller import Caller
from telegrad.rpc.calls.codec import Codec
from telegrad.rpc.extend import MeshCalls
from telegrad.rpc.links.peers import Peers
from telegrad.rpc.meshes import doubts, tree
from telegrad.rpc.meshes.alike_bodies import AlikeBodies
from telegrad.rpc.meshes.heads import RequestHead, open_leaf_request
from telegrad.rpc.meshes.mesh_call import MeshCall
from telegrad.rpc.meshes.tree import HOST_FAN_OUT, MEMBERS_OF_HEAD, Member
from telegrad.rpc.wire.bundle import HEAD, Bundle, join
from telegrad.rpc.wire.header import FRAME_HEAD
from telegrad.rpc.wire.messages import Method, Outgoing
from telegrad.testing import in_process_cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "meshes.md"


@pytest.fixture
def workers(mesh_workers):
    return mesh_workers


@pytest.fixture(params=[in_process, unix, grpc])
def lanes(request, tmp_path):
    return request.param(tmp_path)


class Counted:
    """Object that counts how often it is pickled."""

    pickled = 0

    def __reduce__(self):
        type(self).pickled += 1
        return Counted, ()


def fail_at(name):
    if where() == name:
        raise KeyError(name)
    return name


def hold_at(names):
    return hold() if where() in names else where()


async def later(value):
    await asyncio.sleep(0)
    return value


@rpc.functions.async_execution
def from_next(value):
    return rpc.rpc_async(f"w{(rank() + 1) % len(NAMES)}", str, (value,))


def add_in_place(array):
    array += 1
    return array


def caller():
    return rpc.current_call().caller.name


def test_a_thread_that_waits_for_results_reads_them_itself(tmp_path, closed_gate):
    with in_process_cluster(*NAMES[:3], make_lane=unix(tmp_path)) as agents, agents[0].use():
        rpc.mesh().call(abs, (-1,))
        future = rpc.mesh().call_async(hold).future
        assert future.driver is agents[0].peers.at(1).link.dialed.reading
        GATE.set()
        future.wait()
        assert future.driver is None


def test_every_worker_answers_on_every_lane(lanes):
    with in_process_cluster(*NAMES[:7], make_lane=lanes) as agents, agents[2].use():
        for _ in range(3):
            values = rpc.mesh().call(where)
            assert list(values) == NAMES[:7]
        big = np.arange(100_000.0)  # a large frame
        for array in rpc.mesh().call(add_in_place, (big,)):
            np.testing.assert_array_equal(array, np.arange(1.0, 100_001.0))
        assert big[0] == 0.0


def test_arguments_are_pickled_once_and_at_most_four_copies_leave(workers, monkeypatch):
    Counted.pickled, receivers, send_all = 0, [], Caller.send_all

    def noted(caller, calls):
        for call, _, parts in calls:
            body = b"".join(parts)[FRAME_HEAD.size :] if parts else b"".join(call.pickled)
            if HEAD.unpack_from(body)[1]:  # else it asks for more results
                receivers.append((where(), call.to))
        send_all(caller, calls)

    monkeypatch.setattr(Caller, "send_all", noted)
    assert list(rpc.mesh(NAMES[1:]).call(where, (Counted(),))) == NAMES[1:]
    assert Counted.pickled == 1
    assert sorted(to for _, to in receivers) == list(range(1, len(NAMES)))
    copies = Counter(sender for sender, _ in receivers)
    assert copies["w0"] == 4 and max(copies.values()) == 4
    monkeypatch.setattr(tree, "MEMBERS_OF_HEAD", MEMBERS_OF_HEAD)
    monkeypatch.setattr(tree, "HOST_FAN_OUT", HOST_FAN_OUT)
    receivers.clear()
    rpc.mesh(NAMES[1:21]).call(where)
    traced = [f"    worker{sender[1:]} --> worker{to}" for sender, to in sorted(receivers, key=lambda hop: hop[1])]
    assert "\n".join(traced) in PAGE.read_text()


@pytest.mark.parametrize("count", [1, 3])
def test_bodies_of_alike_requests_are_those_of_bundles(count):
    codec = Codec(10_000, "w")
    call = codec.pack_content(("builtins:abs", (-1,), {}), True, "", lambda body: [])
    head = RequestHead(7, 2**40, 0, 0, False, False, "ä" * 600, ())
    subtree = tuple(Member(number, number + 10, 0) for number in range(count))
    message = Outgoing(Method.MESH, 1, 0.0, 2)
    Bundle(head.encode(subtree, 5), [call]).put_into(message, codec.limit)
    body = b"".join(message.pickled)
    assert b"".join(AlikeBodies(head, 5, join([call])).of(subtree)) == body
    opened = open_leaf_request(body)
    if count == 1:
        assert opened[:5] == (7, 2**40, 5, "ä" * 500, 10)
        assert codec.open_content(opened.call) == ("builtins:abs", (-1,), {})
    else:
        assert opened is None


def test_results_are_found_by_worker_place_and_coordinates(workers):
    mesh = rpc.mesh(NAMES[:6], shape={"host": 2, "rank": 3})
    values = mesh.call(where)
    assert values["w4"] == values[rpc.get_worker_info("w4")] == values[4] == values[np.int64(4)] == values[1, 1] == "w4"
    assert values.at(host=1, rank=-1) == "w5"
    assert [info.name for info, value in values.items() if value == info.name] == NAMES[:6]
    assert len(values) == 6 and values.done() and values.ready() == list(mesh)
    for wrong, error in [("w7", UnknownWorkerError), (6, ArgumentIndexError), (1.5, ArgumentKindError)]:
        with pytest.raises(error):
            values[wrong]


def test_a_mesh_is_sliced_by_the_names_of_its_dimensions(workers):
    mesh = rpc.mesh(NAMES[:8], shape={"host": 2, "rank": 4})
    assert [info.name for info in mesh.at(host=1)] == ["w4", "w5", "w6", "w7"]
    assert [info.name for info in mesh.at(rank=2)] == ["w2", "w6"]
    part = mesh.at(rank=slice(1, 3))
    assert part.shape == {"host": 2, "rank": 2}
    assert [info.name for info in part] == ["w1", "w2", "w5", "w6"]
    assert list(mesh.at(host=0, rank=3).call(where)) == ["w3"]
    assert "w3" in mesh and "w9" not in mesh and mesh.choose() in list(mesh)


def test_a_role_is_a_name_and_a_number():
    with in_process_cluster("ps", "trainer0", "trainer1", "trainers0") as agents, agents[0].use():
        assert [info.name for info in rpc.mesh(role="trainer")] == ["trainer0", "trainer1"]
        assert [info.name for info in rpc.mesh(role="ps")] == ["ps"]
        with pytest.raises(ArgumentValueError, match="'evaluator'"):
            rpc.mesh(role="evaluator")


def test_a_worker_that_is_being_replaced_is_in_the_mesh_once(workers, monkeypatch):
    live = workers[0].peers.live()
    monkeypatch.setattr(workers[0].peers, "live", lambda: [*live, live[3]])  # a former incarnation is not gone yet
    assert [info.name for info in rpc.mesh()] == NAMES


def test_errors_of_functions_are_by_name_and_the_others_are_values(workers):
    values = rpc.mesh().call(fail_at, ("w7",))
    assert {name: type(error) for name, error in values.errors().items()} == {"w7": KeyError}
    assert "w7" in str(values["w7"].__cause__)
    assert sum(value == "w7" for value in values) == len(NAMES) - 1
    with pytest.raises(KeyError):
        values.values()


def test_coroutines_futures_and_lambdas(workers):
    mesh = rpc.mesh()
    assert mesh.call(later, (3,)).values() == [3] * len(NAMES)
    assert mesh.call(from_next, (4,)).values() == ["4"] * len(NAMES)
    assert mesh.call(lambda number: number + 1, kwargs={"number": 1}).values() == [2] * len(NAMES)
    assert set(mesh.call(caller)) == {"w0"}


@rpc.functions.async_execution
def no_future():
    return 5


def test_a_function_that_should_return_a_future_and_does_not_is_told(workers):
    """Before, the workers on which it ran never answered."""
    with pytest.raises(ArgumentTypeError, match="must return a Future; it returned int"):
        rpc.mesh(["w1", "w2"]).call(no_future, timeout=60).values()


@pytest.mark.parametrize("misses", [2, 10**6])
def test_a_worker_that_its_parent_has_not_heard_of_is_waited_for(monkeypatch, misses):
    """Found by the simulator: of a worker that joins the caller had heard, and a worker above it raised KeyError."""
    looks, known = [], Peers.__contains__

    def not_yet(peers, number):
        if (peers.me.name, number) != ("w1", 7):  # the caller sends to w1, which sends to the others
            return known(peers, number)
        looks.append(number)
        return len(looks) > misses

    monkeypatch.setattr(Peers, "__contains__", not_yet)
    with in_process_cluster(*NAMES[:8]) as agents, agents[0].use():
        agents[1].options.reconnect_timeout = 10.0 if misses == 2 else 0.2
        *others, last = rpc.mesh(NAMES[1:8]).call(where)
        assert others == NAMES[1:7]
        if misses == 2:
            assert last == "w7"
        else:
            assert "number 7 was not sent: worker 'w1' has not heard of that worker" in str(last)


def test_tensors_numbers_and_objects_arrive_whole(workers):
    given = {"tensor": tg.arange(4), "list": [1, "two", None], "array": np.eye(2)}
    for value in rpc.mesh().call(dict, (given,)):
        assert value["list"] == given["list"]
        np.testing.assert_array_equal(value["array"], np.eye(2))
        assert value["tensor"].tolist() == [0, 1, 2, 3]


def test_each_worker_gets_its_part(workers):
    mesh = rpc.mesh()
    assert mesh.call(pow, (rpc.scattered(range(23)), 2)).values() == [number**2 for number in range(23)]
    parts = mesh.call(tg.clone, (rpc.sharded(tg.arange(50).reshape(2, 25), dim=1),)).values()
    assert [part.shape[1] for part in parts] == [2, 2] + [1] * 21
    assert tg.cat(parts, dim=1).tolist() == tg.arange(50).reshape(2, 25).tolist()
    names = mesh.call("{}{first}".format, ("a",), {"first": rpc.scattered(NAMES)}).values()
    assert names == ["a" + name for name in NAMES]


def test_lost_workers_lose_their_own_results_only(workers):
    for number in (1, 2, 8, 22):  # heads, an inner worker, a leaf
        workers[number].close("it is lost")
    values = rpc.mesh(NAMES).call(where)
    assert {name: type(error) for name, error in values.errors().items()} == dict.fromkeys(
        ["w1", "w2", "w8", "w22"], WorkerLostError
    )
    assert all(name in str(error) for name, error in values.errors().items())
    assert [value for value in values if isinstance(value, str)] == [
        name for name in NAMES if name not in values.errors()
    ]


ran = []


def note_and_hold():
    ran.append(where())
    hold()
    return where()


def test_a_worker_lost_during_the_call_has_its_children_adopted(workers, closed_gate):
    ran.clear()
    values = rpc.mesh(NAMES).call_async(note_and_hold)
    until(lambda: len(ran) == len(NAMES))
    for number in (1, 3):
        workers[number].close("it is lost")
    GATE.set()
    values.wait(timeout=30)
    assert values.errors().keys() == {"w1", "w3"}
    assert sorted(ran) == sorted(NAMES), "a function ran twice, or not at all"


@pytest.mark.parametrize("passed_on", [False, True])
def test_the_results_below_a_stopped_worker_do_not_wait_for_it(workers, closed_gate, monkeypatch, passed_on):
    ran.clear()
    rpc.mesh(NAMES).call(where)
    monkeypatch.setattr(doubts, "DOUBT_SHARE", 0.005)
    monkeypatch.setattr(doubts, "SIGN_SHARE", 0.005)
    stopped, held = workers[1].sessions, []
    with monkeypatch.context() as patch:
        values = rpc.mesh(NAMES).call_async(note_and_hold, timeout=60) if passed_on else None
        until(lambda: not passed_on or len(ran) == len(NAMES))
        patch.setattr(stopped, "received", lambda *frame: held.append(frame))
        values = values or rpc.mesh(NAMES).call_async(note_and_hold, timeout=60)
        GATE.set()
        until(lambda: {worker.name for worker in values.ready()} >= {*NAMES} - {"w1"})
    for frame in held:
        stopped.received(*frame)
    assert values.wait(timeout=30).errors() == {}
    assert sorted(ran) == sorted(NAMES)


@pytest.mark.processes
def test_a_process_in_the_middle_of_the_tree_is_killed(forked_job):
    running = forked_job("killed_in_mesh", 8, [])
    running.wait(codes=[0] * 6 + [-signal.SIGKILL, 0])
    lines = [f"worker{rank} 1" for rank in range(1, 6)] + ["worker6", "worker7 1", "reduced worker6", "worker6 worker6"]
    told = [line[3:] for line in running.output(0).splitlines() if line.startswith("-> ")]
    assert told == lines, running.outputs()


def test_a_late_request_of_a_lost_caller_runs_nothing(workers):
    ran.clear()
    workers[22].close("it is lost")
    rpc.mesh(NAMES).call(where)  # finds its loss
    until(lambda: workers[1].peers.at(22).gone and workers[2].peers.at(22).gone, 10.0)
    call = workers[1].codec.pack_content((note_and_hold, (), {}), True, "", lambda body: [])
    head = RequestHead(22, 0, 0, 0, False, False, "note_and_hold", ())
    body = Bundle(head.encode((Member(2, 0, 0),), 0), [call], keep=True)
    future = workers[1].caller.request(workers[1].peers.at(2), Method.MESH, body, 20.0, "a request of w22, passed on")
    with pytest.raises(RpcCancelledError):
        future.wait()
    assert not ran


def test_results_come_before_slow_workers_answer(workers, closed_gate):
    values = rpc.mesh(NAMES).call_async(hold_at, (["w1", "w12"],))
    values.wait(any=len(NAMES) - 2, timeout=20)
    assert not values.done()
    assert values["w2"] == "w2" and values["w13"] == "w13"
    with pytest.raises(TimeoutError):
        values.wait(timeout=0.01)
    GATE.set()
    assert values.wait(timeout=20)["w1"] == 1


def hold_at_and_return_none(name):
    hold_at([name])


def test_a_worker_that_is_soon_asked_again_has_work_under_way(workers, closed_gate, monkeypatch):
    asks, ask = [], MeshCall._ask

    def ask_later(call, each):
        asks.append((call, each)) if each[0].held else ask(call, each)

    monkeypatch.setattr(MeshCall, "_ask", ask_later)
    values = rpc.mesh(NAMES[:6]).call_async(hold_at, (["w1"],))
    until(lambda: asks)  # w1, which passed the call on, has given the others' results
    until(lambda: not workers[1].server.serving)
    assert workers[1].open_work() and len(values.ready()) == 5
    GATE.set()
    for call, each in asks:
        ask(call, each)
    assert values.wait().errors() == {}
    until(lambda: not workers[1].open_work())


def test_none_of_a_slow_worker_is_not_taken_for_its_parents(workers, closed_gate):
    values = rpc.mesh(NAMES[1:21]).call_async(hold_at_and_return_none, ("w3",))
    values.wait(any=19, timeout=20)
    GATE.set()
    assert values.wait(timeout=20).values() == [None] * 20


def test_a_timeout_costs_the_results_that_are_missing_only(workers, closed_gate):
    rpc.mesh(NAMES).call(where)  # it connects
    values = rpc.mesh(NAMES).call(hold_at, (["w1", "w2", "w12"],), timeout=1.0)
    assert {name: type(error) for name, error in values.errors().items()} == dict.fromkeys(
        ["w1", "w2", "w12"], RpcTimeoutError
    )
    assert "on worker 'w12' got no answer" in str(values["w12"])
    assert "on worker 'w2' (passed on by worker 'w1') got no answer in time" in str(values["w2"])


def hold_until_cancelled():
    ran.append(where())
    call = rpc.current_call()
    call.cancellation.wait(20)
    ran.remove(where())
    return call.cancelled


def test_a_cancel_reaches_every_worker(workers):
    ran.clear()
    values = rpc.mesh(NAMES).call_async(hold_until_cancelled)
    until(lambda: len(ran) == len(NAMES))
    assert values.cancel() and not values.cancel()
    assert {type(error) for error in values} == {RpcCancelledError}
    until(lambda: not ran)


def test_results_are_forgotten_when_the_call_is_over(workers):
    values = rpc.mesh(NAMES).call(where)
    assert list(values) == NAMES
    kept = [worker.part(MeshCalls)._served for worker in workers]
    assert sum(len(calls) for each in kept for calls in each.values()) == len(NAMES)
    until(lambda: not any(calls for each in kept for calls in each.values()))
    assert not workers[0].part(MeshCalls)._made


def nested():
    return sum(value == "w5" for value in rpc.mesh(NAMES[5:]).call(where))


def test_calls_inside_calls(workers):
    assert rpc.mesh(NAMES[:6]).call(nested).values() == [1] * 6


def test_a_value_mesh_is_awaited(workers):
    async def main():
        return list(await rpc.mesh().call_async(where))

    assert asyncio.run(main()) == NAMES
