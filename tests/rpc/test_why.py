"""``rpc.why`` on jobs in this process: each is stuck in its own way, and its cause, worker and line are named."""

import asyncio
import queue
import threading

import pytest
from helpers.gates import GATE, hold
from helpers.threads import until
from telegrad import rpc
from telegrad.core.futures import Future, collect_all, wait_all
from telegrad.testing import in_process_cluster

pytestmark = pytest.mark.usefixtures("closed_gate")
LOCK = threading.Lock()
RLOCK = threading.RLock()
ITEMS: queue.Queue = queue.Queue()
SIMPLE: queue.SimpleQueue = queue.SimpleQueue()
NEVER: list[Future] = []
CHANGED = threading.Condition()


def explained(about, *, kind, text="", shows=lambda cause: True):
    """Return the first cause of a kind that shows all, which comes soon: workers are not observed at the same moment."""
    seen = []

    def found():
        causes = rpc.why(about).causes
        return next((each for each in causes if each.kind == kind and text in repr(each) and shows(each)), None)

    until(lambda: seen.append(found()) or seen[-1] is not None, 10.0)
    return seen[-1]


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def chained(to):
    return rpc.rpc_sync(to[0], chained, (to[1:],)) if to else hold()


def test_a_chain_of_calls_ends_at_the_callee_and_its_line():
    with in_process_cluster("a", "b", "c") as (a, _, _), a.use():
        answer = rpc.rpc_async("b", chained, (["c"],))
        cause = explained("a", kind="event", text="hold")
        assert (cause.worker, cause.at.line, cause.waiting) == ("c", line_of(hold, 1), ["a", "b"])
        assert "GATE" in cause.text and [step.worker for step in cause.chain] == ["b"]
        GATE.set()
        assert answer.wait() == 1


def take_lock():
    with LOCK:
        return 1


def take_owned_lock():
    with RLOCK:
        return 1


def take_condition():
    with CHANGED:
        return 1


def keep_lock(to):
    with LOCK:
        return call_when_told(to, take_lock)


def keep_owned_lock(to):
    with RLOCK:
        return call_when_told(to, take_owned_lock)


def keep_condition(to):
    with CHANGED:
        return call_when_told(to, take_condition)


def call_when_told(to, function):
    GATE.wait(20)
    return rpc.rpc_sync(to, function, timeout=1.5)


@pytest.mark.parametrize(
    ("keep", "take"), [(keep_lock, take_lock), (keep_owned_lock, take_owned_lock), (keep_condition, take_condition)]
)
def test_a_deadlock_of_a_lock_and_a_call_shows_its_cycle(keep, take):
    with in_process_cluster("a", "b", "c") as (a, b, c), a.use():
        answer = rpc.rpc_async("b", keep, ("c",))
        until(lambda: b.threads.functions.counts()["running"])
        GATE.set()
        cause = explained("a", kind="deadlock")
        assert cause.workers == ["b", "c"] and "deadlock over 'b' and 'c'" in str(rpc.why("b"))
        by_worker = {step.worker: step for step in cause.chain}
        assert by_worker["c"].at.line == line_of(take, 1) and by_worker["b"].at.line == line_of(call_when_told, 2)
        assert by_worker["c"].inferred == (keep is keep_lock)
        with pytest.raises(RuntimeError):
            answer.wait()
        until(lambda: not c.server.serving)


def take_item():
    return ITEMS.get(timeout=20)


def take_simple_item():
    return SIMPLE.get(timeout=20)


def wait_for_change():
    with CHANGED:
        return CHANGED.wait(20)


@pytest.mark.parametrize(
    ("function", "kind", "name", "line"),
    [
        (take_item, "queue", "ITEMS", 1),
        (take_simple_item, "queue", "SIMPLE", 1),
        (wait_for_change, "condition", "CHANGED", 2),
    ],
)
def test_a_queue_and_a_condition_are_named(function, kind, name, line):
    with in_process_cluster("a", "b") as (a, _), a.use():
        answer = rpc.rpc_async("b", function)
        cause = explained("a", kind=kind)
        assert (cause.worker, cause.at.line) == ("b", line_of(function, line)) and cause.text.endswith(name)
        {"ITEMS": ITEMS, "SIMPLE": SIMPLE}.get(name, ITEMS).put(1)
        with CHANGED:
            CHANGED.notify_all()
        answer.wait()
        if name == "CHANGED":
            ITEMS.get()


def test_a_call_whose_callee_waits_for_another_call_without_a_thread():
    @rpc.functions.async_execution
    def forwards(to):
        return collect_all([rpc.rpc_async(to, hold)]).then(lambda done: done.wait()[0].wait())

    with in_process_cluster("a", "b", "c") as (a, _, _), a.use():
        answer = rpc.rpc_async("b", forwards, ("c",))
        cause = explained("a", kind="event", text="returned a future")
        assert cause.worker == "c" and cause.waiting == ["a", "b"]
        assert any(step.worker == "b" and "returned a future" in step.text for step in cause.chain)
        GATE.set()
        assert answer.wait() == 1


@rpc.functions.async_execution
def return_a_future():
    NEVER.append(Future())
    return NEVER[0]


def test_a_future_that_nothing_completes():
    with in_process_cluster("a", "b") as (a, _), a.use():
        answer = rpc.rpc_async("b", return_a_future)
        assert explained("a", kind="future").worker == "b"
        NEVER.pop().set_result(1)
        assert answer.wait() == 1


def test_a_wait_for_several_calls_is_told_for_each(thread):
    with in_process_cluster("a", "b", "c") as (a, _, _), a.use():
        answers = [rpc.rpc_async(name, hold) for name in "bc"]
        waiter = thread(wait_all, answers)
        until(lambda: {each.worker for each in rpc.why("a").causes if each.chain} == {"b", "c"})
        GATE.set()
        waiter.join()


def test_a_coroutine_that_waits_is_named_with_its_line():
    async def sleeps():
        await asyncio.sleep(60)

    async def calls(to):
        return await rpc.rpc_async(to, hold)

    def has_line_of_calls(cause):
        return any(step.at and step.at.line == line_of(calls, 1) for step in cause.chain)

    with in_process_cluster("a", "b", "c") as (a, b, _), a.use():
        sleeping, answer = rpc.rpc_async("b", sleeps), rpc.rpc_async("b", calls, ("c",))
        cause = explained("a", kind="sleeps")
        assert (cause.worker, cause.at.line) == ("b", line_of(sleeps, 1))
        assert explained("a", kind="event", shows=has_line_of_calls).worker == "c"
        GATE.set()
        assert answer.wait() == 1 and sleeping.cancel()
        until(lambda: not b.server.serving)


def test_a_value_that_is_not_made_is_followed_to_what_makes_it(thread):
    with in_process_cluster("a", "b", "c") as (a, _b, _), a.use():
        value = rpc.remote("b", hold)
        fetched = value.to_here_async()
        cause = explained("a", kind="event", text="to_here")
        assert (cause.worker, cause.at.line) == ("b", line_of(hold, 1))
        GATE.set()
        assert fetched.wait() == 1


def test_a_wait_at_the_owner_is_followed_too():
    def local(reference):
        return reference.to_here()

    with in_process_cluster("a", "b") as (a, _), a.use():
        value = rpc.remote("b", hold)
        answer = rpc.rpc_async("b", local, (value,))
        cause = explained("a", kind="event", text="OwnerRRef")
        assert cause.worker == "b" and cause.at.function == "hold"
        GATE.set()
        assert answer.wait() == 1


def test_the_worker_that_is_missing_in_a_barrier(thread):
    def late(agent):
        with agent.use():
            rpc.rpc_sync("b", hold)

    def arrive(agent):
        with agent.use():
            rpc._barrier()

    with in_process_cluster("a", "b", "c") as (a, b, c), a.use():
        waiting = [thread(arrive, each) for each in (a, b)]
        busy = thread(late, c)
        cause = explained(
            "c", kind="event", text="has not called _barrier", shows=lambda it: {"a", "c"} <= {*it.waiting}
        )
        assert cause.worker == "b" and cause.at.function == "hold"
        GATE.set()
        busy.join()
        arrive(c)
        for each in waiting:
            each.join()


def items():
    with LOCK:
        yield 1
        yield 2


def test_a_generator_that_is_not_read_holds_its_lock():
    with in_process_cluster("a", "b") as (a, _b), a.use():
        stream = rpc.stream("b", items, ahead=0)
        assert next(stream) == 1
        answer = rpc.rpc_async("b", take_lock)
        until(
            lambda: any("asks for the next item" in step.text for each in rpc.why().causes for step in each.chain), 10.0
        )
        stream.close()
        assert answer.wait() == 1
