"""Jobs that are stuck, each in its own way, on ``worker0``, ``worker1`` and ``worker2``.

The main threads of these workers call what ``MAIN`` gets.

A comment ``# stuck: NAME`` marks the line that the explanation must name.
"""

import os
import queue
import signal
import threading
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import telegrad as tg
from telegrad import autograd_dist, collective, rpc
from telegrad.core.futures import Future

A, B, C = "worker0", "worker1", "worker2"
PATIENCE = 20.0  # seconds that calls of a deadlock take
MAIN: queue.SimpleQueue = queue.SimpleQueue()  # functions for the main thread
ENDS = [threading.Event()]  # the last ends what waits or computes; each job has one of its own
ARRIVED = threading.Semaphore(0)  # released by each thread that holds what others will wait for
LOCK, FIRST_LOCK, SECOND_LOCK, ITEMS_LOCK = (threading.Lock() for _ in range(4))
ITEMS: queue.Queue = queue.Queue()
GIVEN: queue.SimpleQueue = queue.SimpleQueue()
KEPT: dict[str, Any] = {}


def begin():
    """Prepare a worker for the next job."""
    ENDS.append(threading.Event())


def end():
    """Let all that a job has started on this worker end."""
    ENDS[-1].set()


def in_main(function, *args):
    """Have the main thread of this worker call a function."""
    MAIN.put((function, args))


def arrived():
    """Wait until a thread of this worker holds what others will wait for."""
    assert ARRIVED.acquire(timeout=PATIENCE)


def pid():
    return os.getpid()


# -- calls, references, futures


def keep_lock():
    with LOCK:
        ARRIVED.release()
        ended = ENDS[-1]
        ended.wait(PATIENCE)  # stuck: lock


def hold_and_call(route):
    with LOCK:
        return rpc.rpc_sync(route[0], pass_on, (route[1:],), timeout=PATIENCE)  # stuck: calls


def pass_on(route):
    if route:
        return rpc.rpc_sync(route[0], pass_on, (route[1:],), timeout=PATIENCE)
    return take_lock()


def take_lock():
    with LOCK:
        return 1


def make_when_given():
    return GIVEN.get(timeout=PATIENCE).to_here(timeout=PATIENCE)  # stuck: references


def make_of(reference):
    return reference.to_here(timeout=PATIENCE)


def give(reference):
    GIVEN.put(reference)


@rpc.functions.async_execution
def first_future():
    KEPT["future"] = made = rpc.rpc_async(B, second_future, timeout=PATIENCE).then(lambda done: done.wait())
    ARRIVED.release()
    return made


@rpc.functions.async_execution
def second_future():
    return rpc.rpc_async(A, third_future, timeout=PATIENCE)


@rpc.functions.async_execution
def third_future():
    arrived()
    return KEPT["future"]


# -- locks of one worker


def lock_one_way():
    with FIRST_LOCK:
        ARRIVED.release()
        GIVEN.get(timeout=PATIENCE)
        SECOND_LOCK.acquire(timeout=PATIENCE)  # stuck: cycle


def lock_other_way():
    with SECOND_LOCK:
        GIVEN.put(None)
        FIRST_LOCK.acquire(timeout=PATIENCE)


# -- threads that compute or wait


def hold_interpreter():
    ARRIVED.release()
    return sum(range(10**18))  # one call in C, during which no other thread of Python runs


def loop_for_ever():
    ended = ENDS[-1]
    while not ended.is_set():
        np.tanh(1.0)  # stuck: loop


def wait_for_item():
    with suppress(queue.Empty):
        ITEMS.get(timeout=PATIENCE)  # stuck: queue


def wait_for_end():
    ended = ENDS[-1]
    ended.wait(PATIENCE)  # stuck: event


def fill_pipe():
    reader, KEPT["pipe"] = os.pipe()
    KEPT["reader"] = reader
    with suppress(OSError):
        os.write(KEPT["pipe"], bytes(1 << 20))  # stuck: pipe


def empty_pipe():
    with open(KEPT["reader"], "rb") as reader:
        reader.read(1 << 20)
    os.close(KEPT["pipe"])


def items():
    with ITEMS_LOCK:
        yield 1
        yield 2


def take_lock_of_items():
    with ITEMS_LOCK:
        return 1


# -- gradients, contexts, groups


def with_hook(x):
    y = x * 2.0
    y.register_hook(endless)
    return y


def endless(gradient):
    ended = ENDS[-1]
    while not ended.is_set():
        np.tanh(1.0)  # stuck: hook
    return gradient


def backward_there():
    with autograd_dist.context() as context_id:
        x = tg.ones(3, requires_grad=True)
        loss = rpc.rpc_sync(B, with_hook, (x,)).sum()
        autograd_dist.backward(context_id, [loss])


def stay_in_context():
    with autograd_dist.context():
        rpc.rpc_sync(B, tg.add, (tg.ones(2, requires_grad=True), 1))
        ended = ENDS[-1]
        ended.wait(PATIENCE)  # stuck: context


def meet():
    rpc._barrier([A, B, C])


def late_for_meeting():
    ended = ENDS[-1]
    ended.wait(PATIENCE)  # stuck: late
    rpc._barrier([A, B, C])


def make_group():
    collective.init_process_group("rpc", world_size=3, rank=rpc.get_worker_info().id)


def reduce():
    collective.all_reduce(tg.ones(4))


def late_for_reduction():
    ended = ENDS[-1]
    ended.wait(PATIENCE)  # stuck: member
    reduce()


# -- how each is started, and what its explanation must say


class Stuck(NamedTuple):
    """Stuck job.

    Attributes:
        start: starts it; called on ``main``, which is another worker.
        kind, worker, place: of the cause: ``place`` is the name of the mark at its line, or None if it has no place.
        text: part of the text.
        more: called on ``main`` before ``end`` is called on all workers.
    """

    start: Any
    kind: str
    worker: str
    place: str | None
    text: str
    more: Any = None


STARTED: list[Future] = []


def called(worker, function, *args):
    STARTED.append(rpc.rpc_async(worker, function, args, timeout=2 * PATIENCE))


def start_references():
    one = rpc.remote(A, make_when_given, timeout=PATIENCE)
    two = rpc.remote(B, make_of, (one,), timeout=PATIENCE)
    rpc.rpc_sync(A, give, (two,))
    STARTED.append(one.to_here_async(timeout=PATIENCE))
    KEPT["references"] = [one, two]


def start_lock():
    called(C, keep_lock)
    rpc.rpc_sync(C, arrived)
    called(C, take_lock)


def start_cycle():
    called(A, lock_one_way)
    rpc.rpc_sync(A, arrived)
    called(A, lock_other_way)


def start_interpreter():
    called(C, hold_interpreter)


def start_stopped():
    KEPT["pid"] = rpc.rpc_sync(C, pid)
    os.kill(KEPT["pid"], signal.SIGSTOP)
    called(C, take_lock)


def go_on():
    os.kill(KEPT["pid"], signal.SIGCONT)


def start_meeting(function=meet, late=late_for_meeting):
    for worker in (A, B):
        rpc.rpc_sync(worker, in_main, (function,))
    rpc.rpc_sync(C, in_main, (late,))


def start_generator():
    KEPT["stream"] = stream = rpc.stream(B, items, ahead=0)
    assert next(stream) == 1
    called(B, take_lock_of_items)


def read_generator():
    KEPT.pop("stream").close()


def start_collective():
    for worker in (A, B, C):
        rpc.rpc_sync(worker, in_main, (make_group,))
    start_meeting(reduce, late_for_reduction)


STUCK = {
    "calls over two workers": Stuck(lambda: called(A, hold_and_call, [B, A]), "deadlock", A, "calls", "deadlock over"),
    "calls over three workers": Stuck(
        lambda: called(B, hold_and_call, [C, A, B]), "deadlock", A, "calls", "over 'worker0', 'worker1' and 'worker2'"
    ),
    "references": Stuck(start_references, "deadlock", A, "references", "deadlock over 'worker0' and 'worker1'"),
    "futures": Stuck(lambda: called(A, first_future), "deadlock", A, None, "has returned a future, which waits for"),
    "a lock held": Stuck(start_lock, "event", C, "lock", "waits for the lock LOCK"),
    "a cycle of locks": Stuck(start_cycle, "deadlock", A, "cycle", "deadlock in 'worker0'"),
    "an infinite loop": Stuck(lambda: called(B, loop_for_ever), "computes", B, "loop", "'worker1' computes"),
    "a queue without a producer": Stuck(
        lambda: called(B, wait_for_item), "queue", B, "queue", "an item of a queue ITEMS"
    ),
    "a full pipe": Stuck(
        lambda: called(B, fill_pipe), "output", B, "pipe", "waits to write", lambda: rpc.rpc_sync(B, empty_pipe)
    ),
    "a generator that is not read": Stuck(
        start_generator, "observes", "main", None, "asks for the next item", read_generator
    ),
    "an infinite loop in a gradient hook": Stuck(lambda: called(A, backward_there), "computes", B, "hook", "computes"),
    "a context that is not left": Stuck(lambda: called(A, stay_in_context), "event", A, "context", "an event ended"),
    "a worker that is missing in a barrier": Stuck(start_meeting, "event", C, "late", "has not called _barrier"),
    "a member that is missing in a collective": Stuck(start_collective, "event", C, "member", "all_reduce"),
    "a stopped process": Stuck(start_stopped, "stopped", C, None, "is stopped (SIGSTOP)", go_on),
    "a held interpreter": Stuck(start_interpreter, "interpreter", C, None, "code outside Python holds"),
}
