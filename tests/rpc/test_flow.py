"""Flow control and cancels between agents: what is under way is bounded, and nobody works for a caller that gave up."""

import gc
import signal
import threading
from functools import partial

import numpy as np
import pytest
from telegrad import rpc
from telegrad.base.errors import RpcError, RpcTimeoutError, WorkerLostError
from telegrad.core.futures import Future, collect_all, thread_role, wait_all
from telegrad.rpc.calls.replies import Reply
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.flow.flow import Flow
from telegrad.rpc.lanes.frame import FrameHandle
from telegrad.rpc.receiver import Receiver
from telegrad.rpc.threads.ioloop import RefusesToBlock

KIB = 1024
gate = threading.Event()
ran: list[object] = []
parked: list[Future] = []


@pytest.fixture(autouse=True)
def closed_gate():
    gate.clear()
    ran.clear()
    parked.clear()
    yield
    gate.set()


def wait_at_gate(value=None):
    ran.append(value if isinstance(value, (int, str)) else "array")
    gate.wait(60)
    return value


def note(value):
    ran.append(value)


@rpc.functions.async_execution
def answer_later():
    parked.append(Future())
    return parked[-1]


def nest(depth, here, there, ballast):
    return 0 if depth == 0 else 1 + rpc.rpc_sync(there, nest, (depth - 1, there, here, ballast), timeout=120)


def options(**chosen):
    return GrpcRpcBackendOptions(**{"rpc_timeout": 60, "num_worker_threads": 1, **chosen})


@pytest.fixture
def narrow(cluster):
    """Workers with one thread and room for two calls, or 100 KiB, between any two."""
    with cluster("a", "b", options=options(window_messages=2, window_bytes=100 * KIB)) as agents, agents[0].use():
        yield agents


def in_threads(agent, count, call):
    def work(number):
        with agent.use():
            call(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def line(agent, to="b"):
    return sum(flow["queued"][1] for flow in agent.debug_info()["flow"][to])


def test_a_thread_waits_when_too_many_calls_are_under_way(narrow, until):
    a, _ = narrow
    first = rpc.rpc_async("b", wait_at_gate)
    until(lambda: ran)
    results = []
    threads = in_threads(a, 6, lambda number: results.append(rpc.rpc_async("b", wait_at_gate, (number,))))
    until(lambda: line(a) == 4 and len(results) == 2)
    gate.set()
    for thread in threads:
        thread.join(60)
    assert wait_all([first, *results])[0] is None and len(ran) == 7
    assert line(a) == 0


def test_a_waiting_thread_fails_at_its_deadline_and_its_call_never_runs(narrow, until):
    a, _ = narrow
    pending = [rpc.rpc_async("b", wait_at_gate, (number,)) for number in range(3)]
    with pytest.raises(RpcTimeoutError, match=r"the call of wait_at_gate on worker 'b' got no answer within 0.2 s"):
        rpc.rpc_sync("b", wait_at_gate, ("late",), timeout=0.2)
    assert line(a) == 0
    gate.set()
    wait_all(pending)
    assert "late" not in ran


def test_a_message_larger_than_the_window_passes(narrow):
    gate.set()
    for size in (90, 150, 500, 3000):
        array = np.arange(size * KIB // 8)
        np.testing.assert_array_equal(rpc.rpc_sync("b", wait_at_gate, (array,)), array)


@pytest.mark.slow
@pytest.mark.parametrize("window", [{"window_messages": 1}, {"window_bytes": 1}], ids=["messages", "bytes"])
def test_nested_calls_of_any_depth_need_no_room(cluster, window):
    with cluster("a", "b", options=options(**window)) as (a, _), a.use():
        assert rpc.rpc_sync("b", nest, (1000, "b", "a", "x" * 100), timeout=120) == 1000


def test_a_thread_that_must_not_block_leaves_its_call_in_line(narrow, until):
    a, _ = narrow
    array = np.ones(1000)
    thread_role.blocker = RefusesToBlock()
    try:
        futures = [rpc.rpc_async("b", wait_at_gate, (array,)) for _ in range(8)]
        array[:] = 2  # it was captured
    finally:
        thread_role.blocker = None
    until(lambda: ran and line(a) == 5)
    gate.set()
    assert all(value.tolist() == [1] * 1000 for value in wait_all(futures))


def test_the_line_of_those_that_must_not_block_is_bounded(narrow, monkeypatch):
    array, told = np.ones(5 * KIB), []
    monkeypatch.setattr(narrow[0].control, "post", lambda *message: told.append(message))
    thread_role.blocker = RefusesToBlock()
    try:
        futures = [rpc.rpc_async("b", wait_at_gate, (array,)) for _ in range(10)]
    finally:
        thread_role.blocker = None
    refused = [future for future in futures if future.done()]
    assert len(refused) >= 4
    with pytest.raises(RpcError, match=r"'b' was not sent: too many messages.*await"):
        refused[0].wait()
    assert not told  # no cancel: nothing of them has left
    gate.set()
    collect_all(futures).wait(60)


async def test_calls_of_an_event_loop_wait_in_line(cluster):
    with cluster("a", "b", options=options(window_messages=2)) as (a, _), a.use():
        gate.set()
        futures = [rpc.rpc_async("b", wait_at_gate, (number,)) for number in range(30)]
        assert [await future for future in futures] == list(range(30))


def test_a_lost_peer_ends_the_wait_for_room(narrow, until):
    a, b = narrow
    errors = []

    def call(number):
        try:
            rpc.rpc_sync("b", wait_at_gate, (number,))
        except WorkerLostError as error:
            errors.append(error)

    threads = in_threads(a, 6, call)
    until(lambda: line(a) == 3)
    gate.set()
    gate.clear()
    b.close("it ends")
    for thread in threads:
        thread.join(60)
    assert errors and not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("when", ["in line", "as it gets room"])
def test_an_interrupted_thread_gives_its_place_and_its_room_back(narrow, until, monkeypatch, when):
    """Ctrl-C in a thread that waits for room: its call is over, and the room that it has or gets serves others."""
    a, _ = narrow
    pending = [rpc.rpc_async("b", wait_at_gate, (number,)) for number in range(3)]
    until(lambda: ran)

    def interrupted(future, timeout=None):
        monkeypatch.undo()
        if when != "in line":
            gate.set()
            until(future.done)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rpc.rpc_async("b", wait_at_gate, ("interrupted",))
    gate.set()
    wait_all(pending)
    assert line(a) == 0 and len(a.caller.table) == 0 and "interrupted" not in ran
    for number in range(5):
        rpc.rpc_sync("b", note, (number,))
    until(lambda: a.debug_info()["serving"] == 0)
    assert sum(flow["in_flight"][1] for flow in a.debug_info()["flow"]["b"]) <= 1


# -- cancels


def test_a_future_that_its_user_completed_keeps_no_other_call_from_failing(narrow):
    a, _ = narrow
    mine, others = [rpc.rpc_async("b", wait_at_gate, timeout=0) for _ in range(2)]
    mine.set_result("mine")
    a.peers.mark_gone(a.peers.find("b"), "it is lost")
    a.caller.peer_lost(a.peers.find("b"))
    with pytest.raises(WorkerLostError, match="it is lost"):
        others.wait(20)
    assert mine.wait() == "mine"


@pytest.mark.slow
def test_a_call_that_is_taken_back_gives_all_its_room_back(cluster, monkeypatch, until):
    with cluster("a", "b", options=options()) as (a, _), a.use():
        rpc.rpc_sync("b", note, (0,))
        (before,) = (flow["in_flight"] for flow in a.debug_info()["flow"]["b"])
        monkeypatch.setattr(FrameHandle, "withdraw", lambda handle: True)
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("b", wait_at_gate, (1,), timeout=0.2)
        until(lambda: [flow["in_flight"] for flow in a.debug_info()["flow"]["b"]] == [before])


def test_a_callee_drops_a_call_that_timed_out_while_it_waited_for_a_thread(cluster, until):
    with cluster("a", "b", options=options()) as (a, b), a.use():
        first = rpc.rpc_async("b", wait_at_gate)
        until(lambda: ran)
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("b", note, ("given up",), timeout=0.2)
        until(lambda: b.debug_info()["serving"] == 1)  # it is let go before a thread is free
        gate.set()
        first.wait()
        rpc.rpc_sync("b", note, ("next",))
        assert ran == [None, "next"] or ran == ["array", "next"]


def test_a_cancel_that_overtakes_its_call_is_remembered(cluster):
    with cluster("a", "b", options=options()) as (a, b), a.use():
        peer = b.peers.find("a")
        coming = a.caller.table.new_call(0, 0, 0, "").call_id + 1
        b.server.cancel(peer, coming)
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("b", note, ("cancelled",), timeout=0.3)
        rpc.rpc_sync("b", note, ("next",))
        assert ran == ["next"]
        for number in range(10_000):
            b.server.cancel(peer, 2**60 + number)
        assert len(b.server._cancelled) <= 4096


def test_an_answer_of_a_call_that_is_over_is_not_sent(cluster, until):
    with cluster("a", "b", options=options()) as (a, b), a.use():
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("b", wait_at_gate, (np.ones(10_000),), timeout=0.2)
        gate.set()
        until(lambda: b.debug_info()["serving"] == 0)
        assert line(b, "a") == 0


def test_an_answer_that_has_left_is_kept_no_longer(narrow, until):
    """One that takes more than half of the window goes another way; its memory must not wait for the call's deadline."""
    gate.set()
    for size in (10, 90, 500):
        rpc.rpc_sync("b", wait_at_gate, (np.ones(size * KIB // 8),))
    until(lambda: not any(isinstance(each, Reply) for each in gc.get_objects()))


def keep_answers(monkeypatch):
    """Let no answer that arrives be read; return a list of functions that read one each."""
    unread = []
    for name in ("_reply", "_done"):
        read = getattr(Receiver, name)
        monkeypatch.setattr(Receiver, name, lambda *args, read=read: unread.append(partial(read, *args)))
    return unread


def test_a_large_answer_without_room_is_not_copied(narrow, monkeypatch):
    """Its thread waits: there is room as soon as the answers before it are known to be used."""
    transmit, pieces = Flow._transmit, []

    def record(self, message, parts):
        if isinstance(message, Reply):
            pieces.append(len(parts))
        return transmit(self, message, parts)

    monkeypatch.setattr(Flow, "_transmit", record)
    gate.set()
    assert rpc.rpc_sync("b", wait_at_gate, (1,)) == 1
    assert rpc.rpc_sync("b", wait_at_gate, (np.ones(500 * KIB // 8),)).sum() == 500 * KIB // 8
    assert len(pieces) == 1 and pieces[0] > 1


def test_a_thread_that_waits_for_room_for_an_answer_is_free_at_its_deadline(narrow, monkeypatch, until):
    _, b = narrow
    unread = keep_answers(monkeypatch)
    gate.set()
    first = rpc.rpc_async("b", wait_at_gate, (1,))
    until(lambda: unread)
    with pytest.raises(RpcTimeoutError):
        rpc.rpc_sync("b", wait_at_gate, (np.ones(500 * KIB // 8),), timeout=0.3)
    until(lambda: b.debug_info()["serving"] == 0 and line(b, "a") == 0)
    monkeypatch.undo()
    unread[0]()
    assert first.wait() == 1
    assert rpc.rpc_sync("b", wait_at_gate, (2,)) == 2
    until(lambda: not any(isinstance(each, Reply) for each in gc.get_objects()))


def test_requests_of_a_caller_that_does_not_read_are_not_started(cluster, until, monkeypatch):
    """Answers in line hold back further requests; they go on when there is room, and end with the session."""
    with cluster("a", "b", options=options(window_messages=2)) as (a, b), a.use():
        unread = keep_answers(monkeypatch)
        thread_role.blocker = RefusesToBlock()
        try:
            futures = [rpc.rpc_async("b", note, (number,)) for number in range(10)]
        finally:
            thread_role.blocker = None
        until(lambda: line(b, "a") == 1)
        assert ran == [0, 1, 2]
        monkeypatch.undo()
        for read in unread:
            read()
        wait_all(futures)
        assert sorted(ran) == list(range(10))


def test_a_long_line_goes_message_by_message_without_nesting(cluster, until, monkeypatch):
    """Each answer that is opened makes room for the next; in one thread, as in-process, that must not be a recursion."""
    with cluster("a", "b", options=options(window_messages=1, num_worker_threads=4)) as (a, b), a.use():
        unread = keep_answers(monkeypatch)
        thread_role.blocker = RefusesToBlock()
        try:
            futures = []
            for _ in range(600):
                until(lambda: line(a) < 10)
                futures.append(rpc.rpc_async("b", answer_later))
        finally:
            thread_role.blocker = None
        until(lambda: len(parked) == 600)
        for future in parked:
            future.set_result(None)
        until(lambda: unread)
        assert line(b, "a") == 599
        monkeypatch.undo()
        unread[0]()
        assert wait_all(futures) == [None] * 600


# -- real processes


@pytest.mark.processes
@pytest.mark.parametrize("how", ["stopped", "slow"])
def test_a_flood_to_a_worker_that_does_not_take_it_costs_little(forked_job, tmp_path, how):
    """3 GB of arguments to a worker that is stopped, or whose one thread is busy: both stay small, all calls fail by name."""
    workers = forked_job("flood", 2, [tmp_path, 1])
    workers.read_until(0, "ready")
    if how == "stopped":
        workers.processes[1].send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    workers.read_until(0, "timed-out", 90)
    workers.processes[1].send_signal(signal.SIGCONT)
    (tmp_path / "continue").touch()
    workers.wait(90)
    words = workers.output(0).split()
    found = {word: words[index + 1] for index, word in enumerate(words[:-1])}
    assert found["timed-out"] == "300" and found["named"] == "True", found
    assert int(found["peak"]) < 300 and int(found["after"]) < 200 and int(found["there"]) < 300, found
