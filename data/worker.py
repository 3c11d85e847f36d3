"""Worker process of a loader: it answers tasks until its parent tells it to end, or is gone."""

from __future__ import annotations

import os
import pickle
import select
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..base.allocator import keep_freed_memory
from ..core.shared_memory import Segment, create_segment, open_segment
from .fetcher import END, Fetcher
from .messages import STARTING, Answer, Begin, Failure, Task
from .packing import Packed, unpack
from .seeding import seed_worker
from .worker_info import WorkerInfo, set_worker_info

INLINE_BYTES = 1 << 15  # a smaller batch travels in the message

Program = tuple[Fetcher, Callable[[int], Any] | None]  # and the user's worker_init_fn


@dataclass
class WorkerSetup:
    """Number of a worker, and its connection to the parent."""

    number: int
    count: int
    parent: int
    connection: Connection
    inherited: list[Connection]  # the parent's ends, which a forked child has too: it closes them


def work(setup: WorkerSetup, program: Program | None) -> None:
    """Run a worker. A process that was forked has its ``program``; any other receives it through the connection."""
    # Ctrl-C reaches every process of a terminal: the parent handles it and ends the workers. It was blocked until here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for connection in setup.inherited:
        connection.close()
    keep_freed_memory()
    worker = Worker(setup)
    try:
        worker.run(program)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the parent has closed the connection


class Worker:
    """Worker that takes messages from a thread that receives them: so the parent never waits to send."""

    def __init__(self, setup: WorkerSetup) -> None:
        self.setup = setup
        self.epoch = -1  # the latest that the parent began
        self.tasks: SimpleQueue[Begin | Task | Exception | None] = SimpleQueue()
        self.segments = SegmentPool()
        self.make: Callable[[Any], Any] = _not_begun

    def run(self, program: Program | None) -> None:
        """Answer tasks until the parent says to end, or until the program or a pass cannot start."""
        try:
            self._serve(*(self._receive_program() if program is None else program))
        except Exception as error:
            self._send(Answer(self.epoch, STARTING, failure=describe(error)))

    def _serve(self, fetcher: Fetcher, initialize: Callable[[int], Any] | None) -> None:
        threading.Thread(target=listen, args=(self,), name="telegrad-data-listener", daemon=True).start()
        while (message := self.tasks.get()) is not None:
            if isinstance(message, Task):
                self._answer(message)
            elif isinstance(message, Exception):
                raise message
            else:
                self._begin(fetcher, message.seed, initialize)
                initialize = None

    def _receive_program(self) -> Program:
        sizes = self.setup.connection.recv()
        # A private mapping: all workers share the memory, and a page is copied when one writes to it.
        segment = open_segment(recv_handle(self.setup.connection), private=True)
        program: Program = unpack(np.frombuffer(segment, np.uint8), sizes)
        return program

    def _begin(self, fetcher: Fetcher, seed: int, initialize: Callable[[int], Any] | None) -> None:
        number = self.setup.number
        seed_worker(seed, number)
        set_worker_info(WorkerInfo(number, self.setup.count, seed + number, fetcher.dataset))
        if initialize is not None:
            initialize(number)
        self.make = fetcher.open()

    def _answer(self, task: Task) -> None:
        self.segments.take_back(task.reusable, task.lost)
        if task.epoch != self.epoch:
            return
        answer = Answer(task.epoch, task.number)
        try:
            batch = self.make(task.index)
            packed = None if batch is END else Packed(batch)
        except Exception as error:
            answer.failure = describe(error)
            self._send(answer)
            return
        segment = None
        if packed is None:
            answer.end = True
        else:
            segment = self.segments.store(packed, answer)
        self._send(answer, segment)

    def _send(self, answer: Answer, segment: Segment | None = None) -> None:
        connection = self.setup.connection
        connection.send_bytes(pickle.dumps(answer, 5))
        if answer.new and segment is not None:
            send_handle(connection, segment.fd, self.setup.parent)


@dataclass
class SegmentPool:
    """Segments of this worker: those with batches that the parent uses, and those that are free."""

    in_use: dict[int, Segment] = field(default_factory=dict)
    free: dict[int, Segment] = field(default_factory=dict)
    made: int = 0

    def take_back(self, reusable: list[int], lost: list[int]) -> None:
        """Free the segments that the parent has released, and forget those that cannot be used again."""
        self.free.update((number, self.in_use.pop(number)) for number in reusable)
        for number in lost:
            del self.in_use[number]

    def store(self, packed: Packed, answer: Answer) -> Segment | None:
        """Write a packed batch into the message, or into a segment, which is returned; ``answer`` says which."""
        answer.sizes = packed.sizes
        if packed.size <= INLINE_BYTES:
            answer.inline = bytearray(packed.size)
            packed.write(answer.inline)
            return None
        fits = [number for number, segment in self.free.items() if len(segment) >= packed.size]
        if fits:
            answer.segment = number = min(fits, key=lambda each: len(self.free[each]))
            segment = self.free.pop(number)
        else:
            answer.gone = list(self.free)
            self.free.clear()
            self.made += 1
            answer.segment, answer.new = self.made, True
            segment = create_segment(packed.size + packed.size // 8)  # the next batch may be a little larger
        self.in_use[answer.segment] = segment
        packed.write(segment)
        return segment


def listen(worker: Worker) -> None:
    """Receive messages, in a thread; end the process when the parent has ended without saying so."""
    connection, tasks = worker.setup.connection, worker.tasks
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if (parent := _watch(worker.setup.parent)) is not None:
        poll.register(parent, select.POLLIN)
    ended = False
    while True:
        if any(fd == parent for fd, _ in poll.poll()):
            os._exit(1)
        try:
            message = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            if not ended:
                os._exit(1)
            return
        except Exception as error:
            message = error  # a sample index that this process cannot unpickle
        if isinstance(message, Begin):
            worker.epoch = message.epoch
        ended = ended or message is None
        tasks.put(message)
        if ended:
            poll.unregister(connection.fileno())


def _watch(process: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends, whatever descriptors others have inherited."""
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        os._exit(1)
    except (OSError, AttributeError):
        return None  # an old system: the closed connection shows the same


def describe(error: Exception) -> Failure:
    """Return an exception in the form in which the parent gets it."""
    try:
        pickled = pickle.dumps(error)
    except Exception:
        pickled = None
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Failure(pickled, type(error).__qualname__, str(error), text)


def _not_begun(index: Any) -> Any:
    raise RuntimeError(f"a task came before its pass began: {index}")
