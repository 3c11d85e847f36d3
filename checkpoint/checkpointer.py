"""``Checkpointer``: saves the parts of a training in a folder, and brings them back."""

from __future__ import annotations

import operator
import os
import weakref
from collections.abc import Collection
from datetime import datetime, timezone
from functools import partial
from typing import Any

import numpy as np

from ..base.arguments import check_type
from ..base.errors import ArgumentTypeError, CheckpointError
from ..core.futures import Future, attempt, in_thread
from ..data import DataLoader
from .folder import INDEX, Entry
from .in_use import InUse
from .index import SHARD_NAME, Index, ShardFile
from .job import Job
from .lock import NoLock, WriterLock
from .parts import Pausable, RandomNumbers, is_own, is_sharded, load_part, stateful
from .reading import newest
from .remote import open_folder
from .retention import Measured, ranked, superfluous
from .snapshot import Buffers, Snapshot, go_behind_others


class Checkpointer:
    """Checkpoints of a training in a folder. In a distributed job all workers make one, and call its methods together.

    A checkpoint counts from when its index is on the disk, after its files. One that is damaged, or that was half written when
    its writer was killed, is passed over with a ``CheckpointWarning``, and the one before is used.

    Args:
        folder: where the checkpoints are, a folder for each; it is made when the first one is saved. An address such as
            ``s3://bucket/run`` is reached by fsspec (the extra ``fsspec``).
        keep: how many of the last checkpoints to keep; ``None`` keeps all.
        keep_best: how many to keep besides, of those with the best metric.
        mode: "min" if a lower metric is better, else "max".
        own: names of further parts of which each worker of a distributed job has another one, such as its stage of a pipeline.
        group: the workers that save together; ``None`` is the default process group, if there is one.
        rng: whether the default generator of Telegrad, and those of Python and NumPy, are a part, named "rng".
        parts: objects with ``state_dict`` and ``load_state_dict``, by name: ``model=``, ``optimizer=``, ``loader=``,
            ``scheduler=`` or any other; also random generators of Telegrad, NumPy or Python, and dicts with values of your own.
            ``None`` is left out.

    Raises:
        TypeError: a part is another object.
        ValueError: an option is out of its range.

    Example:
        >>> import tempfile
        >>> import telegrad as tg
        >>> model = tg.nn.Linear(3, 2)
        >>> optimizer = tg.optim.Adam(model.parameters())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints = tg.checkpoint.Checkpointer(folder, model=model, optimizer=optimizer)
        ...     for step in range(checkpoints.restore(), 20):
        ...         loss = model(tg.ones(4, 3)).sum()
        ...         loss.backward()
        ...         optimizer.step()
        ...         if (step + 1) % 10 == 0:
        ...             checkpoints.save(step + 1)
        ...     checkpoints.steps()
        [10, 20]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        keep: int | None = 3,
        keep_best: int = 0,
        mode: str = "min",
        rng: bool = True,
        own: Collection[str] = (),
        group: Any = None,
        **parts: Any,
    ) -> None:
        _check_options(keep, keep_best, mode, rng)
        self._folder = open_folder(folder)
        self._keep, self._keep_best, self._mode = keep, keep_best, mode
        given = {name: part for name, part in parts.items() if part is not None}
        if rng:
            given["rng"] = RandomNumbers()
        self._parts = {name: stateful(name, part) for name, part in given.items()}
        check_type("own", own, Collection, "a list of names of parts")
        if unknown := [name for name in own if name not in self._parts]:
            raise ValueError(f"own names {unknown}, and the parts are {[*self._parts]}")
        self._own = {name for name, part in self._parts.items() if name in own or is_own(part)}
        self._sharded = {name for name, part in self._parts.items() if is_sharded(part)} - self._own
        self._pausable = {name: part for name, part in self._parts.items() if isinstance(part, Pausable)}
        self._job = Job(group)
        self._process = os.getpid()
        self._lock: WriterLock | NoLock | None = None
        self._buffers = Buffers()
        self._in_use = InUse()
        self._writing: list[Future[None]] = []
        weakref.finalize(self, _wait_for, self._writing, self._process)  # also at the end of the process

    # -- saving

    def save(self, step: int, *, metric: float | None = None) -> None:
        """Save all parts as they are now; when this returns, the checkpoint is on the disk. Then remove superfluous ones.

        Args:
            step: number of steps that were done. A number may come again, after a training went back.
            metric: measure of the model, such as its loss on held-out data, for ``keep_best``.

        Raises:
            CheckpointError: another writer uses the folder, or the disk is full or fails. The earlier checkpoints are whole.
            TypeError: a part has a state that cannot be saved; the text says where.
        """
        with self._in_use:
            if self._pausable:
                self.save_async(step, metric=metric)
                self.wait()
                return
            step = self._checked(step)
            self.wait()
            self._write(step, _number(metric), self._job.all_do(self._states))

    def save_async(self, step: int, *, metric: float | None = None) -> Future[None]:
        """Save all parts as they are now, beside training, and return the future of the writing.

        The large arrays of an optimizer, its parameters and its state, are copied beside training too, and its next step waits
        for that; all else is copied before this returns. Memory for one copy of the large arrays is kept. A checkpoint that is
        still being written is waited for first, and its error is raised here, as by ``wait`` and ``close``.

        Args:
            step, metric: as for ``save``.

        Raises:
            CheckpointError, TypeError, ValueError: as for ``save``. The future's error says so if parameters were changed
                otherwise than by their optimizer, before they were copied.
        """
        with self._in_use:
            step = self._checked(step)
            self.wait()
            try:
                snapshot = self._snapshot()
            except Exception as error:
                if self._job.size > 1:  # the other workers wait for this one
                    self._writing.append(in_thread(self._job.all_do, partial(_fail, error)))
                raise
            try:
                future = in_thread(self._write_snapshot, step, _number(metric), snapshot)
            except BaseException:  # there is no thread
                self._go_on()
                raise
            self._writing.append(future)
            return future

    def wait(self, timeout: float | None = None) -> None:
        """Wait until what ``save_async`` began is written, and raise its error, once.

        Args:
            timeout: seconds; ``None`` is no limit.

        Raises:
            CheckpointError: it could not be written.
            TimeoutError: it is not written yet.
        """
        if self._writing:
            future = self._writing.pop()
            try:
                future.wait(timeout)
            finally:
                if not future.done():
                    self._writing.append(future)

    def _snapshot(self) -> Snapshot:
        """Return the states as they are now; what other threads change is paused until ``_write_snapshot`` has the copies."""
        paused = []
        try:
            for part in self._pausable.values():
                part.pause()
                paused.append(part)
            return Snapshot(self._states(), self._parts.values(), self._buffers)
        except BaseException:
            for part in paused:
                part.go_on()
            raise

    def _go_on(self) -> None:
        for part in self._pausable.values():
            part.go_on()

    def _checked(self, step: Any) -> int:
        if os.getpid() != self._process:
            raise CheckpointError(
                f"this Checkpointer was made by process {self._process}, which this one was forked from, and which holds the "
                "lock of the folder; make one for another folder here"
            )
        number = None if isinstance(step, (bool, np.bool_)) or not hasattr(step, "__index__") else operator.index(step)
        if number is None or number < 0:
            raise ValueError(f"step must be an integer that is not negative, and you gave {step!r}")
        return number

    def _states(self) -> dict[str, Any]:
        """Return the states that this worker writes: the first one also those that are equal on all."""
        mine = (name for name in self._parts if self._job.rank == 0 or name in self._own or name in self._sharded)
        return {name: self._state(name) for name in mine}

    def _state(self, name: str) -> Any:
        part: Any = self._parts[name]
        return part.sharded_state_dict() if name in self._sharded else part.state_dict()

    def _write_snapshot(self, step: int, metric: float | None, snapshot: Snapshot) -> None:
        try:
            snapshot.finish()
        finally:
            self._go_on()
        go_behind_others()
        self._job.all_do(snapshot.check)
        self._write(step, metric, snapshot.states)
        for name, part in self._pausable.items():
            part.saved(snapshot.states[name])
        snapshot.release()

    def _write(self, step: int, metric: float | None, states: dict[str, Any]) -> None:
        entry: Entry | None = None
        try:
            begun = self._job.share(self._job.all_do(lambda: self._begin(step)))
            if any(each.step != step for each in begun):
                raise CheckpointError(
                    f"the workers saved the steps {[each.step for each in begun]}; all save at the same step"
                )
            entry = begun[0]
            files = self._job.share(self._job.all_do(lambda: self._write_file(begun[0], states)))
            self._job.all_do(lambda: self._commit(begun[0], metric, files))
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint of step {step} cannot be written to {self._folder}: {error}; earlier ones are whole"
            ) from error
        finally:
            if entry is not None and self._job.rank == 0 and not self._folder.exists(entry, INDEX):
                self._folder.remove(entry)

    def _begin(self, step: int) -> Entry:
        if self._job.rank:
            return Entry(0, step, "")
        self._take_lock()
        return self._folder.begin(step)

    def _commit(self, entry: Entry, metric: float | None, files: list[ShardFile]) -> None:
        if self._job.rank:
            return
        for file in files:
            if not self._folder.exists(entry, file.name) or self._folder.size(entry, file.name) != file.size:
                raise CheckpointError(
                    f"{file.name} is not in {self._folder} on worker 0: the folder must be one that all workers share"
                )
        saved_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._folder.commit(entry, Index(entry.step, metric, saved_at, files))
        self._remove_superfluous()

    def _take_lock(self) -> None:
        if self._lock is None:
            self._lock = self._folder.lock()
            complete = self._folder.entries()
            for entry in self._folder.entries(complete=False):
                if entry not in complete:  # its writer was killed: there is no other now
                    self._folder.remove(entry)

    def _write_file(self, entry: Entry, states: dict[str, Any]) -> ShardFile:
        name = SHARD_NAME.format(self._job.rank)
        checksum = self._folder.save(entry, name, states)
        return ShardFile(name, self._folder.size(entry, name), checksum, [*states])

    def _remove_superfluous(self) -> None:
        measured = self._measured()
        for number in superfluous([*measured], self._keep, self._keep_best, self._mode):
            self._folder.remove(next(entry for each, entry in measured.items() if each.number == number))

    def _measured(self) -> dict[Measured, Entry]:
        found = {}
        for entry in self._folder.entries():
            try:
                metric = self._folder.read_index(entry).metric
            except (CheckpointError, OSError):
                metric = None  # it is damaged: not among the best
            found[Measured(entry.number, metric)] = entry
        return found

    # -- reading

    def restore(self, step: int | None = None) -> int:
        """Bring all parts back to the newest checkpoint that is whole, and return its step: 0 if there is no checkpoint.

        A checkpoint's parts that this object does not have are left alone.

        Args:
            step: go back to this step instead.

        Raises:
            CheckpointError: there are checkpoints, and all are damaged; or a part does not fit, and the text names what is
                missing, unexpected or of another shape. Parts that were given before it have been loaded then.
        """
        self.wait()
        needed = None if self._sharded else {0, self._job.rank}
        found = newest(self._folder, step, self._job, needed)
        if found is None:
            if step is not None:
                raise CheckpointError(
                    f"there is no checkpoint of step {step} in {self._folder}; there are {self.steps()}"
                )
            return 0
        entry, workers, states = found
        self._job.all_do(lambda: self._load(entry, workers, states))
        return entry.step

    def _load(self, entry: Entry, workers: int, states: dict[int, dict[str, Any]]) -> None:
        where = f"checkpoint {entry.name} in {self._folder}"
        if missing := [name for name in self._parts if name not in states[0]]:
            raise CheckpointError(f"{where} has no part named {', '.join(missing)}; it has {', '.join(states[0])}")
        for name, part in self._parts.items():
            if name in self._sharded:
                shards = [state[name] for state in states.values()]
                load_part(name, part.load_sharded_state_dict, shards, where)  # type: ignore[attr-defined]
            elif name not in self._own:
                load_part(name, part.load_state_dict, states[0][name], where)
            elif workers == self._job.size:
                load_part(name, part.load_state_dict, states[self._job.rank][name], where)
            else:
                self._load_of_others(name, workers, states, where)

    def _load_of_others(self, name: str, workers: int, states: dict[int, dict[str, Any]], where: str) -> None:
        """Load a part of which each worker has its own, where another number of workers saved it."""
        part, first = self._parts[name], states[0][name]
        if isinstance(part, DataLoader):
            if not first["place"]["ended"]:
                raise CheckpointError(
                    f"{where} was saved by {workers} workers inside an epoch, and {self._job.size} workers cannot go on "
                    f"with it: restore it with {workers}, or leave out {name} to begin the epoch anew"
                )
            load_part(name, part.load_state_dict, first, where)
        elif not isinstance(part, RandomNumbers):
            raise CheckpointError(f"{where} has {name} of {workers} workers, and {self._job.size} would restore it")
        elif self._job.rank in states:
            load_part(name, part.load_state_dict, states[self._job.rank][name], where)

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints, the oldest first."""
        return [entry.step for entry in self._folder.entries()]

    def latest(self) -> int | None:
        """Return the step of the newest checkpoint that is complete, without reading its files; ``None`` if there is none."""
        return next(iter(self.steps()[::-1]), None)

    def best(self) -> int | None:
        """Return the step of the checkpoint with the best metric; ``None`` if none has one."""
        measured = self._measured()
        steps = {each.number: entry.step for each, entry in measured.items()}
        return next((steps[number] for number in ranked([*measured], self._mode)), None)

    def close(self) -> None:
        """Wait until all is written, by other threads too, and let another writer use the folder, as the process's end does."""
        if os.getpid() == self._process:  # else a forked child waited for threads that it does not have
            self._in_use.wait()
            self.wait()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _number(metric: float | None) -> float | None:
    number, problem = (None, None) if metric is None else attempt(float, metric)
    if problem is not None or isinstance(metric, str):
        raise ArgumentTypeError(f"metric must be a number; you gave {metric!r}")
    return number


def _fail(error: Exception) -> None:
    raise error


def _wait_for(writing: list[Future[None]], process: int) -> None:
    while writing and os.getpid() == process:  # a forked child has no thread that writes
        writing.pop().wait()


def _check_options(keep: int | None, keep_best: int, mode: str, rng: bool) -> None:
    if keep is not None and (not isinstance(keep, int) or keep < 1):
        raise ValueError(f"keep must be a positive integer or None, and you gave {keep!r}")
    if not isinstance(keep_best, int) or keep_best < 0:
        raise ValueError(f"keep_best must be an integer that is not negative, and you gave {keep_best!r}")
    if mode not in ("min", "max"):
        raise ValueError(f"mode must be 'min' or 'max', and you gave {mode!r}")
    if not isinstance(rng, bool):
        raise ValueError(f"rng is True or False, and you gave {rng!r}; give a generator of your own another name")
