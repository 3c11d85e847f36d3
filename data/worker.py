"""What a worker process of a loader does: answer tasks until it is told to end, or its parent is gone."""

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

from ..core.allocator import keep_freed_memory
from ..core.shared_memory import Segment, create_segment, open_segment
from .messages import STARTING, Answer, Begin, Failure, Task
from .parcels import Parcel, unpack
from .recipe import END, Recipe
from .seeding import seed_worker
from .worker_info import WorkerInfo, set_worker_info

INLINE_BYTES = 1 << 15  # what is smaller goes with the message

Program = tuple[Recipe, Callable[[int], Any] | None]  # and the user's worker_init_fn


@dataclass
class Place:
    """Which worker this is, and of whom."""

    number: int
    count: int
    parent: int
    connection: Connection
    inherited: list[Connection]  # the parent's ends, which a forked child has too, and has no business with


def work(place: Place, program: Program | None) -> None:
    """The whole life of a worker. Without a ``program`` (it was forked with one), it comes through the connection."""
    # Ctrl-C reaches every process of a terminal; the parent's is enough, it ends the workers. It was blocked until here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for connection in place.inherited:
        connection.close()
    keep_freed_memory()
    worker = Worker(place)
    try:
        worker.run(program)
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody wants an answer any more


class Worker:
    """Takes messages that a thread of its own receives: so the parent never waits to send, and its end is noticed at once."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.epoch = -1  # the latest that was heard of
        self.tasks: SimpleQueue[Begin | Task | Exception | None] = SimpleQueue()
        self.shelf = Shelf()
        self.make: Callable[[Any], Any] = _not_begun

    def run(self, program: Program | None) -> None:
        """Answer tasks until told to end, or until what every task needs fails."""
        try:
            self._serve(*(self._receive_program() if program is None else program))
        except Exception as error:
            self._send(Answer(self.epoch, STARTING, failure=describe(error)))

    def _serve(self, recipe: Recipe, initialize: Callable[[int], Any] | None) -> None:
        threading.Thread(target=listen, args=(self,), name="telegrad-data-listener", daemon=True).start()
        while (message := self.tasks.get()) is not None:
            if isinstance(message, Task):
                self._answer(message)
            elif isinstance(message, Exception):
                raise message
            else:
                self._begin(recipe, message.seed, initialize)
                initialize = None

    def _receive_program(self) -> Program:
        sizes = self.place.connection.recv()
        # A mapping that copies what is written: all workers have the one memory, and none sees what others change.
        segment = open_segment(recv_handle(self.place.connection), private=True)
        program: Program = unpack(np.frombuffer(segment, np.uint8), sizes)
        return program

    def _begin(self, recipe: Recipe, seed: int, initialize: Callable[[int], Any] | None) -> None:
        number = self.place.number
        seed_worker(seed, number)
        set_worker_info(WorkerInfo(number, self.place.count, seed + number, recipe.dataset))
        if initialize is not None:
            initialize(number)
        self.make = recipe.open()

    def _answer(self, task: Task) -> None:
        self.shelf.take_back(task.reusable, task.lost)
        if task.epoch != self.epoch:
            return
        answer = Answer(task.epoch, task.number)
        try:
            batch = self.make(task.index)
            parcel = None if batch is END else Parcel(batch)
        except Exception as error:
            answer.failure = describe(error)
            self._send(answer)
            return
        segment = None
        if parcel is None:
            answer.end = True
        else:
            segment = self.shelf.store(parcel, answer)
        self._send(answer, segment)

    def _send(self, answer: Answer, segment: Segment | None = None) -> None:
        connection = self.place.connection
        connection.send_bytes(pickle.dumps(answer, 5))
        if answer.new and segment is not None:
            send_handle(connection, segment.fd, self.place.parent)


@dataclass
class Shelf:
    """The segments of this worker: those that the parent has batches in, and those that are free."""

    lent: dict[int, Segment] = field(default_factory=dict)
    free: dict[int, Segment] = field(default_factory=dict)
    made: int = 0

    def take_back(self, reusable: list[int], lost: list[int]) -> None:
        """What the parent says of the segments it was lent."""
        self.free.update((number, self.lent.pop(number)) for number in reusable)
        for number in lost:
            del self.lent[number]

    def store(self, parcel: Parcel, answer: Answer) -> Segment | None:
        """Put a parcel where the answer says then: into the message, or into a segment, which is returned."""
        answer.sizes = parcel.sizes
        if parcel.size <= INLINE_BYTES:
            answer.inline = bytearray(parcel.size)
            parcel.write(answer.inline)
            return None
        fits = [number for number, segment in self.free.items() if len(segment) >= parcel.size]
        if fits:
            answer.segment = number = min(fits, key=lambda each: len(self.free[each]))
            segment = self.free.pop(number)
        else:
            answer.gone = list(self.free)
            self.free.clear()
            self.made += 1
            answer.segment, answer.new = self.made, True
            segment = create_segment(parcel.size + parcel.size // 8)  # the next may be a little larger
        self.lent[answer.segment] = segment
        parcel.write(segment)
        return segment


def listen(worker: Worker) -> None:
    """Receive messages, in a thread; end the process when the parent has ended without a word."""
    connection, tasks = worker.place.connection, worker.tasks
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if (parent := _watch(worker.place.parent)) is not None:
        poll.register(parent, select.POLLIN)
    told = False
    while True:
        if any(fd == parent for fd, _ in poll.poll()):
            os._exit(1)
        try:
            message = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            if not told:
                os._exit(1)
            return
        except Exception as error:
            message = error  # a sample number that this process cannot unpickle
        if isinstance(message, Begin):
            worker.epoch = message.epoch
        told = told or message is None
        tasks.put(message)
        if told:
            poll.unregister(connection.fileno())


def _watch(process: int) -> int | None:
    """A descriptor that becomes readable when a process ends; nobody else can keep that from being noticed."""
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        os._exit(1)
    except (OSError, AttributeError):
        return None  # an old system; the closed connection tells the same


def describe(error: Exception) -> Failure:
    """What the parent gets to know of an exception."""
    try:
        pickled = pickle.dumps(error)
    except Exception:
        pickled = None
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Failure(pickled, type(error).__qualname__, str(error), text)


def _not_begun(index: Any) -> Any:
    raise RuntimeError(f"a task came before its pass began: {index}")
