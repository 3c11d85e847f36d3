"""``Checkpointer``: saves the parts of a training in a folder, and brings them back."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

from ..core.errors import CheckpointError
from .folder import INDEX, Entry, Folder
from .index import Index, ShardFile
from .lock import WriterLock
from .parts import RandomNumbers, load_part, stateful
from .reading import newest
from .retention import Measured, ranked, superfluous

FILE = "worker{}.safetensors"


class Checkpointer:
    """Checkpoints of a training in a folder.

    A checkpoint counts from when its index is on the disk, after its files. One that is damaged, or that was half written when
    its writer was killed, is passed over with a ``CheckpointWarning``, and the one before is used.

    Args:
        folder: where the checkpoints are, a folder for each; it is made when the first one is saved.
        keep: how many of the last checkpoints to keep; ``None`` keeps all.
        keep_best: how many to keep besides, of those with the best metric.
        mode: "min" if a lower metric is better, else "max".
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
        **parts: Any,
    ) -> None:
        _check_options(keep, keep_best, mode, rng)
        self._folder = Folder(folder)
        self._keep, self._keep_best, self._mode = keep, keep_best, mode
        given = {name: part for name, part in parts.items() if part is not None}
        if rng:
            given["rng"] = RandomNumbers()
        self._parts = {name: stateful(name, part) for name, part in given.items()}
        self._lock: WriterLock | None = None

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
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise ValueError(f"step must be an integer that is not negative, and you gave {step!r}")
        self._write(step, None if metric is None else float(metric), self._states())

    def _states(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._parts.items()}

    def _write(self, step: int, metric: float | None, states: dict[str, Any]) -> None:
        entry: Entry | None = None
        try:
            self._take_lock()
            entry = self._folder.begin(step)
            file = self._write_file(entry, 0, states)
            saved_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
            self._folder.commit(entry, Index(step, metric, saved_at, [file]))
            self._remove_superfluous()
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint of step {step} cannot be written to {self._folder}: {error}; earlier ones are whole"
            ) from error
        finally:
            if entry is not None and not self._folder.exists(entry, INDEX):
                self._folder.remove(entry)

    def _take_lock(self) -> None:
        if self._lock is None:
            self._lock = WriterLock(self._folder.path)
            complete = self._folder.entries()
            for entry in self._folder.entries(complete=False):
                if entry not in complete:  # its writer was killed: there is no other now
                    self._folder.remove(entry)

    def _write_file(self, entry: Entry, rank: int, states: dict[str, Any]) -> ShardFile:
        name = FILE.format(rank)
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
        entries = [entry for entry in self._folder.entries() if step is None or entry.step == step]
        found = newest(self._folder, entries)
        if found is None:
            if step is not None:
                raise CheckpointError(
                    f"there is no checkpoint of step {step} in {self._folder}; there are {self.steps()}"
                )
            return 0
        entry, states = found
        self._load(entry, states)
        return entry.step

    def _load(self, entry: Entry, states: list[dict[str, Any]]) -> None:
        (own,) = states
        if missing := [name for name in self._parts if name not in own]:
            raise CheckpointError(
                f"checkpoint {entry.name} in {self._folder} has no part named {', '.join(missing)}; it has {', '.join(own)}"
            )
        for name, part in self._parts.items():
            load_part(name, part, own[name], f"checkpoint {entry.name} in {self._folder}")

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
        """Let another writer use the folder. So does the end of the process."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _check_options(keep: int | None, keep_best: int, mode: str, rng: bool) -> None:
    if keep is not None and (not isinstance(keep, int) or keep < 1):
        raise ValueError(f"keep must be a positive integer or None, and you gave {keep!r}")
    if not isinstance(keep_best, int) or keep_best < 0:
        raise ValueError(f"keep_best must be an integer that is not negative, and you gave {keep_best!r}")
    if mode not in ("min", "max"):
        raise ValueError(f"mode must be 'min' or 'max', and you gave {mode!r}")
    if not isinstance(rng, bool):
        raise ValueError(f"rng is True or False, and you gave {rng!r}; give a generator of your own another name")
