"""Worker processes of a loader, in their parent: it starts them, sends tasks, receives answers, and ends them in any case."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import weakref
from collections import deque
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler, recv_handle, send_handle
from typing import Any

import numpy as np

from ..core.shared_memory import Segment, create_segment, fork_count, open_segment
from .errors import DataLoaderError, WorkerTraceback
from .messages import STARTING, Answer, Begin, Failure, Task
from .packing import Packed, unpack
from .worker import Program, WorkerSetup, work

# Seconds that workers have to finish a sample when they have to end, before they are killed.
GRACE_SECONDS = 1.0


class Worker:
    """One worker process: its connection, and its segments, which hold the batches.

    Args:
        number: its number, from 0.
        process: its process.
        connection: this end of its connection.
    """

    def __init__(self, number: int, process: BaseProcess, connection: Connection) -> None:
        self.number = number
        self.process = process
        self.connection = connection
        self.answered = False
        self.segments: dict[int, Segment] = {}
        self.in_use: set[int] = set()  # segments that hold a batch which is in use here
        self.reusable: deque[int] = deque()
        self.lost: deque[int] = deque()

    def __str__(self) -> str:
        return f"DataLoader worker {self.number} (process {self.process.pid})"

    def send(self, message: Begin | Task | None) -> None:
        """Send a message. If the worker is dead, waiting for its answer will show that."""
        if isinstance(message, Task):
            message.reusable, message.lost = _emptied(self.reusable), _emptied(self.lost)
        try:
            self.connection.send_bytes(ForkingPickler.dumps(message))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self) -> Answer:
        """Return the worker's next answer, and open the segment that may come with it."""
        answer: Answer = pickle.loads(self.connection.recv_bytes())
        self.answered = True
        for number in answer.gone:
            del self.segments[number]
        if answer.new and answer.segment is not None:
            self.segments[answer.segment] = open_segment(recv_handle(self.connection))
        return answer

    def unpack(self, answer: Answer, most: int) -> Any:
        """Return the batch of an answer. The worker may use its segment again when nothing here refers to its memory.

        With ``most`` segments in use the batch is a copy, and the segment is free at once: so programs that keep many batches
        do not run out of descriptors.
        """
        if answer.segment is None:
            return unpack(np.frombuffer(answer.inline or bytearray(), np.uint8), answer.sizes)
        memory = np.frombuffer(self.segments[answer.segment], np.uint8)
        if len(self.in_use) >= most:
            self.reusable.append(answer.segment)
            return unpack(memory.copy(), answer.sizes)
        self.in_use.add(answer.segment)
        # All arrays of the batch are views of this one, and keep it.
        weakref.finalize(memory, self._released, answer.segment, fork_count()).atexit = False
        return unpack(memory, answer.sizes)

    def _released(self, number: int, forks: int) -> None:
        self.in_use.discard(number)
        # A child that was forked meanwhile may still use the batch: then its memory must not be written to again.
        if forks == fork_count():
            self.reusable.append(number)
        else:
            self.segments.pop(number, None)
            self.lost.append(number)

    def refuse(self, answer: Answer) -> None:
        """Free the segment of an answer that is not used."""
        if answer.segment is not None:
            self.reusable.append(answer.segment)

    def close(self) -> None:
        """Tell the worker to end. Batches that are in use keep their memory."""
        self.send(None)
        self.connection.close()
        self.segments.clear()


def _emptied(queue: deque[int]) -> list[int]:
    return [queue.popleft() for _ in range(len(queue))]


class Pool:
    """Pool of ``count`` workers; ``close`` ends them in any state.

    Args:
        program: the fetcher and the user's ``worker_init_fn``.
        count: number of workers.
        context: a context of multiprocessing.

    Raises:
        PicklingError: the program cannot be pickled.
    """

    def __init__(self, program: Program, count: int, context: Any) -> None:
        self.workers: list[Worker] = []
        self.epoch = 0
        self._owner = os.getpid()
        self._poll = select.poll()
        self._by_connection: dict[int, Worker] = {}
        self._by_sentinel: dict[int, Worker] = {}
        # Answers of this pass that have not been asked for yet, by number.
        self.arrived: dict[int, tuple[Worker, Answer]] = {}
        forked = context.get_start_method() == "fork"
        packed = None if forked else _packed(program)
        try:
            for number in range(count):
                self._start(number, count, context, program if forked else None)
            for worker in self.workers if packed is not None else ():
                _send_program(worker, *packed)  # type: ignore[misc]
        except BaseException:
            self.close()
            raise

    def _start(self, number: int, count: int, context: Any, program: Program | None) -> None:
        ours, theirs = context.Pipe()
        inherited = [ours, *(worker.connection for worker in self.workers)] if program is not None else []
        setup = WorkerSetup(number, count, os.getpid(), theirs, inherited)
        process = context.Process(target=work, args=(setup, program), name=f"telegrad-data-{number}", daemon=True)
        # A Ctrl-C while the child's interpreter starts would make it print a traceback.
        former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
            worker = Worker(number, process, ours)
            self.workers.append(worker)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        for descriptor, table in ((ours.fileno(), self._by_connection), (process.sentinel, self._by_sentinel)):
            table[descriptor] = worker
            self._poll.register(descriptor, select.POLLIN)

    def begin(self, seed: int) -> int:
        """Begin a pass, and return its number; answers of the former pass are dropped."""
        self.epoch += 1
        for worker, answer in self.arrived.values():
            worker.refuse(answer)
        self.arrived.clear()
        for worker in self.workers:
            worker.send(Begin(self.epoch, seed))
        return self.epoch

    def receive(self, timeout: float | None) -> bool:
        """Wait for an answer of this pass, and put it into ``arrived``; False after ``timeout`` seconds.

        Raises:
            DataLoaderError: a worker died.
            Exception: a worker could not start: its exception.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            rest = None if deadline is None else max(deadline - time.monotonic(), 0) * 1000
            ready = [descriptor for descriptor, _ in self._poll.poll(rest)]
            if not ready:
                return False
            # Answers first: a worker may have sent some before it died.
            sender = next((self._by_connection[each] for each in ready if each in self._by_connection), None)
            if sender is None:
                raise DataLoaderError(_exit_message(self._by_sentinel[ready[0]]))
            answer = self._receive_from(sender)
            if answer.number == STARTING and answer.failure is not None:
                raise rebuild(answer.failure, sender)
            if answer.epoch == self.epoch:
                self.arrived[answer.number] = sender, answer
                return True
            sender.refuse(answer)

    def _receive_from(self, worker: Worker) -> Answer:
        try:
            return worker.receive()
        except (EOFError, OSError, RuntimeError):
            worker.process.join(GRACE_SECONDS)
            if worker.process.is_alive():
                raise
            raise DataLoaderError(_exit_message(worker)) from None

    def close(self) -> None:
        """End the workers and wait for them. Repeating this does nothing."""
        if os.getpid() != self._owner:
            return  # in a forked child, they are not its children
        workers, self.workers = self.workers, []
        try:
            for worker in workers:
                worker.close()
            deadline = time.monotonic() + GRACE_SECONDS
            for worker in workers:
                worker.process.join(max(deadline - time.monotonic(), 0))
        finally:
            for worker in workers:
                worker.process.kill()
            for worker in workers:
                worker.process.join()
                worker.process.close()


def _packed(program: Program) -> tuple[list[int], Segment]:
    """Return a program in a segment, which all workers map."""
    try:
        packed = Packed(program, ForkingPickler)
    except Exception as error:
        raise pickle.PicklingError(
            f"what a worker process needs (the dataset, collate_fn and worker_init_fn) cannot be pickled: {error}; define "
            'their classes and functions at the top of a module, or give the DataLoader multiprocessing_context="fork"'
        ) from error
    segment = create_segment(packed.size)
    packed.write(segment)
    return packed.sizes, segment


def _send_program(worker: Worker, sizes: list[int], segment: Segment) -> None:
    try:
        worker.connection.send(sizes)
        send_handle(worker.connection, segment.fd, worker.process.pid)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it died: waiting for its answers will show that


def _exit_message(worker: Worker) -> str:
    worker.process.join()
    code = worker.process.exitcode or 0
    if code < 0:
        name = signal.Signals(-code).name
        memory = "; the machine may be out of memory" if name == "SIGKILL" else ""
        return f"{worker} was killed by {name}{memory}; exit code {code}"
    if worker.answered:
        return f"{worker} ended on its own, with exit code {code}; something in the dataset or collate_fn exits the process"
    return (
        f"{worker} ended before its first answer, with exit code {code}; what it wrote to stderr says why. Does your script "
        'start its work under `if __name__ == "__main__":`? Worker processes import it'
    )


def rebuild(failure: Failure, worker: Worker) -> Exception:
    """Return the exception of a worker, with its traceback there as the cause; another type if it cannot be unpickled."""
    error: Any = None
    try:
        if failure.pickled is not None:
            error = pickle.loads(failure.pickled)
    except Exception:
        pass  # its class cannot be rebuilt here
    # A StopIteration would end the caller's loop without an error.
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        error = DataLoaderError(f"{failure.kind} in {worker}: {failure.text}")
    error.__cause__ = WorkerTraceback(str(worker), failure.traceback)
    return error
