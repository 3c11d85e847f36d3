"""Calls and shutdowns end, whatever callees, exceptions and callbacks do, also when the agent is closed meanwhile."""

import asyncio
import contextvars
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcError, RpcTimeoutError, UnknownWorkerError, WorkerLostError
from telegrad.core.futures import Future, copy_error
from telegrad.rpc.calls import codec
from telegrad.rpc.group.gathering import Gathering, _all_gather, _offer
from telegrad.rpc.group.rounds import Contribution, Rounds
from telegrad.rpc.group.shutdown import Shutdown, shut_down
from telegrad.rpc.links.control_queue import ControlQueue
from telegrad.rpc.threads.coroutines import Coroutines

SOON = 60


async def sleep_for_ever():
    await asyncio.Event().wait()


async def ignores_its_end():
    while not Stubborn.end.is_set():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            pass


class Stubborn:
    end = threading.Event()


class Unspeakable(Exception):
    """Its text and its pickle end the process, or try to."""

    def __str__(self):
        raise SystemExit("str")

    def __reduce__(self):
        raise KeyboardInterrupt("pickle")


def wait_for_a_moment():
    threading.Event().wait(0.2)


def raise_unspeakable():
    raise Unspeakable


def together(*agents):
    """All agents shut down at the same time; every one of them must come through."""
    with ThreadPoolExecutor(len(agents)) as pool:
        for ending in [pool.submit(shut_down, agent, True, SOON) for agent in agents]:
            ending.result(2 * SOON)


# -- shutdown


@pytest.mark.parametrize("function", [sleep_for_ever, ignores_its_end])
@pytest.mark.slow
def test_shutdown_does_not_wait_for_a_coroutine_whose_caller_gave_up(cluster, function, caplog):
    Stubborn.end.clear()
    with cluster("a", "b") as (a, b), a.use():
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("b", function, timeout=0.1)
        threading.Timer(10, Stubborn.end.set).start() if function is ignores_its_end else None
        together(a, b)
    Stubborn.end.set()
    assert "failed" not in caplog.text
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


@pytest.mark.parametrize("verb", ["call", "remote"])
def test_an_exception_that_cannot_be_told_is_told_nevertheless(cluster, verb):
    with cluster("a", "b") as (a, b), a.use():
        with pytest.raises(Unspeakable) as caught:
            if verb == "call":
                rpc.rpc_sync("b", raise_unspeakable)
            else:
                rpc.remote("b", raise_unspeakable).to_here()
        assert "in raise_unspeakable" in str(caught.value.__cause__)
        del caught
        together(a, b)


def test_an_exception_that_cannot_be_copied_is_itself():
    error = Unspeakable()
    assert copy_error(error) is error


def test_a_request_whose_answer_cannot_be_made_counts_as_served(cluster, monkeypatch, until):
    with cluster("a", "b") as (a, b), a.use():
        monkeypatch.setattr(codec, "describe_failure", lambda error, worker, by_value: 1 / 0)
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("b", raise_unspeakable, timeout=0.5)
        together(a, b)


def test_closing_an_agent_ends_its_shutdown(cluster, until):
    with cluster("a", "b") as (a, _), ThreadPoolExecutor(1) as pool:
        ending = pool.submit(shut_down, a, True, 0)
        until(lambda: a.part(Shutdown)._made is not None)
        a.close("somebody closed it")
        with pytest.raises(AgentClosedError, match=r"'a' was closed while it waited in shutdown"):
            ending.result(SOON)


def test_a_signal_handler_may_close_the_agent_that_waits_in_shutdown(cluster):
    with cluster("a", "b") as (a, _):
        former = signal.signal(signal.SIGALRM, lambda *_: shut_down(a, False, 0))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(AgentClosedError, match="closed while it waited in shutdown"):
                shut_down(a, True, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)


async def shut_down_in_a_coroutine():
    rpc.shutdown()


@pytest.mark.parametrize("function", [rpc.shutdown, shut_down_in_a_coroutine])
def test_a_function_that_a_worker_runs_cannot_wait_for_its_own_end(cluster, function):
    with cluster("a", "b") as (a, b), a.use():
        with pytest.raises(RpcError, match=r"shutdown\(\) of worker 'b' inside a function"):
            rpc.rpc_sync("b", function, timeout=SOON)
        assert not b.closed
        together(a, b)


def test_a_callback_cannot_wait_for_its_own_end(cluster):
    with cluster("a", "b") as (a, b), a.use():
        late = rpc.rpc_async("b", wait_for_a_moment)
        with pytest.raises(RpcError, match="or callback that it runs"):
            late.then(lambda done: shut_down(a, True, SOON)).wait(SOON)
        together(a, b)


@pytest.mark.slow
def test_shutdown_notices_a_dead_worker_that_never_called_whatever_its_time_out(cluster):
    with cluster("a", "b") as (a, b), ThreadPoolExecutor(1) as pool:
        b.close(farewell=False)
        pool.submit(shut_down, a, True, 100 * SOON).result(SOON)


def test_two_threads_may_wait_for_the_last_acknowledgement(cluster, monkeypatch):
    with cluster("a") as (a,):
        monkeypatch.setattr(a.control, "flush_drained", lambda: None)
        assert a.control.drain() is a.control.drain()


def test_control_queues_are_only_touched_under_their_lock(cluster, monkeypatch):
    """The ticker, readers and shutdown look up what is due at the same time."""
    unlocked = []

    def next_due(queue, original=ControlQueue.next_due):
        if not any(peer.lock._is_owned() for agent in (a, b) for peer in agent.peers if peer.control is queue):
            unlocked.append(queue)
        return original(queue)

    with cluster("a", "b") as (a, b), a.use():
        monkeypatch.setattr(ControlQueue, "next_due", next_due)
        rpc.remote("b", list).to_here()
        together(a, b)
    assert not unlocked


def test_shutdown_may_be_told_twice_that_all_is_acknowledged(cluster):
    with cluster("a") as (agent,):
        drained, control = Future(), agent.control
        control._drained = drained
        drained.add_done_callback(lambda done: None)
        drained.set_result(None)  # by another reader's thread
        control.flush_drained()
        assert control._drained is None


def test_a_part_that_fails_to_close_does_not_keep_the_others_open(cluster, caplog):
    with cluster("a") as (a,):
        ended = []
        a.on_close[:0] = [lambda: 1 / 0]
        a.on_close.append(lambda: ended.append(True))
        a.close()
        assert ended and "a part of it could not be closed" in caplog.text


# -- coroutines


def test_first_coroutines_at_the_same_time_share_a_loop():
    for _ in range(20):
        coroutines, context = Coroutines("test-coroutines"), contextvars.copy_context()
        go = threading.Barrier(4)

        def first(coroutines=coroutines, context=context, go=go):
            go.wait(SOON)
            return coroutines.run(asyncio.sleep(0, threading.get_ident()), context.copy()).wait(SOON)

        with ThreadPoolExecutor(4) as pool:
            assert len({each.result(SOON) for each in [pool.submit(first) for _ in range(4)]}) == 4
        assert coroutines.close(SOON) == []
        assert not [thread for thread in threading.enumerate() if thread.name == "test-coroutines"]


def test_closing_cancels_coroutines_begun_or_not():
    coroutines = Coroutines("test-coroutines")
    outcomes = [coroutines.run(sleep_for_ever(), contextvars.copy_context()) for _ in range(100)]
    assert coroutines.close(SOON) == []
    for outcome in outcomes:
        with pytest.raises(asyncio.CancelledError):
            outcome.wait(SOON)


def test_no_coroutine_begins_after_the_end():
    coroutines = Coroutines("test-coroutines")
    coroutines.close(SOON)
    coroutine = sleep_for_ever()
    with pytest.raises(AgentClosedError, match="runs no more coroutines"):
        coroutines.run(coroutine, contextvars.copy_context())
    assert coroutine.cr_frame is None  # closed, and not warned about


# -- callbacks


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, asyncio.CancelledError, ValueError])
def test_a_callback_that_raises_does_not_stop_the_next(error):
    future, ran = Future(), []

    def fail(done):
        ran.append("first")
        raise error("stop")

    future.add_done_callback(fail)
    future.add_done_callback(lambda done: ran.append("second"))
    future.set_result(None)
    assert ran == ["first", "second"]


def test_an_interrupt_in_a_callback_is_raised_after_the_others_ran():
    future, ran = Future(), []

    def interrupt(done):
        raise KeyboardInterrupt

    future.add_done_callback(interrupt)
    future.add_done_callback(lambda done: ran.append("second"))
    with pytest.raises(KeyboardInterrupt):
        future.set_result(None)
    assert ran == ["second"]


# -- gatherings


def test_after_a_time_out_the_others_get_the_next_object(workers):
    a, b, _ = workers
    group = ["a", "b"]
    for leader, other in ((a, b), (b, a)):
        told = f"did not end within 0.2 s: '{other.name}' had not called it"
        with leader.use(), pytest.raises(RpcTimeoutError, match=told):
            _all_gather("old", group, timeout=0.2)
        with ThreadPoolExecutor(1) as pool:

            def gather(agent=other):
                with agent.use():
                    return _all_gather("its", group)

            its = pool.submit(gather)
            with leader.use():
                mine = _all_gather("new", group)
            assert mine == its.result(SOON) == {leader.name: "new", other.name: "its"}
        for agent in workers:
            assert not any(agent.part(Gathering)._rounds.values())


def test_a_gathering_with_a_lost_worker_fails_at_once(workers, until):
    a, b, _ = workers
    rpc.rpc_sync("b", abs, (-1,))
    b.close()
    until(lambda: a.peers.find("b").gone)
    for _ in range(2):
        with a.use(), pytest.raises(WorkerLostError, match="'b'"):
            _all_gather(1, timeout=SOON)


def test_a_loss_also_ends_the_objects_of_the_lost(workers, until):
    a, b, _ = workers
    with b.use():
        rpc.rpc_async("a", _offer, (("a", "b", "c"), "b", 0, "object", 60.0), timeout=60)
    until(lambda: any(a.part(Gathering)._rounds.values()))
    b.close()
    until(lambda: not any(a.part(Gathering)._rounds.values()) and not a.server.serving)


def test_an_object_leaves_at_its_deadline_though_no_withdrawal_comes(workers, until):
    a, b, _ = workers
    with b.use(), pytest.raises(RpcTimeoutError):
        rpc.rpc_sync("a", _offer, (("a", "b"), "b", 0, "object", 0.2), timeout=0.2)
    until(lambda: not any(a.part(Gathering)._rounds.values()) and not a.server.serving)


def offer(rounds, name, ticket):
    made = Contribution(ticket, f"{name}{ticket}")
    full = rounds.offer(name, made)
    return made, full if full is None else {each.value for each in full.values()}


def test_rounds_take_the_first_of_every_queue():
    rounds = Rounds(("a", "b"))
    assert offer(rounds, "a", 0)[1] == set()
    assert offer(rounds, "a", 1)[1] == set()
    assert offer(rounds, "b", 0)[1] == {"a0", "b0"}
    assert offer(rounds, "b", 1)[1] == {"a1", "b1"}
    assert not rounds


def test_an_object_leaves_when_its_sender_gave_up():
    rounds = Rounds(("a", "b"))
    first, _ = offer(rounds, "a", 0)
    assert rounds.withdraw("a", 0) is first
    assert offer(rounds, "b", 0)[1] == set()
    assert offer(rounds, "a", 1)[1] == {"a1", "b0"}
    assert rounds.withdraw("a", 1) is None
    assert not rounds


def test_a_withdrawal_may_overtake_its_object():
    rounds = Rounds(("a", "b"))
    assert rounds.withdraw("a", 0) is None
    assert offer(rounds, "a", 0)[1] is None
    offer(rounds, "b", 0)
    assert offer(rounds, "a", 1)[1] == {"a1", "b0"}
    assert not rounds


@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        (["a", "x"], UnknownWorkerError, "no worker 'x'"),
        (["x", "a"], UnknownWorkerError, "no worker 'x'"),
        ("ab", TypeError, r"write worker_names=\['ab'\]"),
        ([None, "a"], TypeError, "named a worker by None"),
        (["b"], ValueError, r"'a' is not among worker_names=\['b'\]"),
    ],
)
def test_a_group_is_checked_before_anything_is_sent(cluster, names, error, words):
    with cluster("a", "b") as (a, b), a.use():
        with pytest.raises(error, match=words):
            _all_gather(1, names)
        assert not a.part(Gathering)._rounds and not b.part(Gathering)._rounds
        assert _all_gather(1, iter([a.info(), 0, "a"])) == {"a": 1}


def test_a_loss_ends_everything_that_waits():
    rounds = Rounds(("a", "b", "c"))
    waiting = [offer(rounds, name, ticket)[0] for name, ticket in (("a", 0), ("a", 1), ("b", 0))]
    assert rounds.end() == waiting and not rounds
