"""``Folder``: the checkpoints below one path, each a folder of its own that counts from when its index is there.

``00000007-step-350/`` is the seventh that was begun. Numbers decide which is newest, so neither a clock nor a training that
went back to an earlier step can change the order.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open

from ..core.serialization import CheckpointError, load, save
from .index import Index
from .lock import NoLock, WriterLock

INDEX = "index.json"
_LARGEST_INDEX = 64 << 20  # bytes; each worker's file takes about 300
_NAME = re.compile(r"(\d{8,})-step-(\d+)")


class Entry(NamedTuple):
    """Checkpoint in a folder.

    Attributes:
        number: how many were begun before it, plus one.
        step: the step after which it was saved.
        name: the name of its folder.
    """

    number: int
    step: int
    name: str


class Folder:
    """Checkpoints in a folder of a file system that this machine has mounted.

    Args:
        path: the folder; it is made when the first checkpoint is saved.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.path.expanduser(path))

    def __str__(self) -> str:
        return self.path

    def entries(self, *, complete: bool = True) -> list[Entry]:
        """Return the checkpoints in the order of their numbers.

        Args:
            complete: leave out those without an index, which are being written, or whose writer was killed.
        """
        found = [(match, name) for name in self._names() if (match := _NAME.fullmatch(name))]
        entries = sorted(Entry(int(match[1]), int(match[2]), name) for match, name in found)
        return [entry for entry in entries if not complete or self.exists(entry, INDEX)]

    def begin(self, step: int) -> Entry:
        """Make the folder of a new checkpoint, behind all others."""
        number = max((entry.number for entry in self.entries(complete=False)), default=0) + 1
        entry = Entry(number, step, f"{number:08}-step-{step}")
        self._make(entry)
        return entry

    def lock(self) -> WriterLock | NoLock:
        """Keep other writers out.

        Raises:
            CheckpointError: there is one.
        """
        return WriterLock(self.path)

    def read_index(self, entry: Entry) -> Index:
        """Return the index of a checkpoint.

        Raises:
            CheckpointError: it is damaged.
            OSError: it cannot be read.
        """
        if (size := self.size(entry, INDEX)) > _LARGEST_INDEX:
            raise CheckpointError(f"its index has {size:,} bytes, and none has more than {_LARGEST_INDEX:,}")
        return Index.from_json(self._read(entry, INDEX).decode(errors="replace"))

    def commit(self, entry: Entry, index: Index) -> None:
        """Write the index, from when on the checkpoint counts: all of its files are on the disk before."""
        self._write(entry, INDEX, index.to_json().encode())

    # -- on a disk; a subclass may be elsewhere

    def _names(self) -> list[str]:
        return os.listdir(self.path) if os.path.isdir(self.path) else []

    def _make(self, entry: Entry) -> None:
        os.makedirs(self.path, exist_ok=True)
        os.mkdir(self._place(entry))
        _sync(self.path)

    def _place(self, entry: Entry, name: str = "") -> str:
        return os.path.join(self.path, entry.name, name)

    def exists(self, entry: Entry, name: str) -> bool:
        """Return whether a checkpoint has a file of that name."""
        return os.path.isfile(self._place(entry, name))

    def size(self, entry: Entry, name: str) -> int:
        """Return the length of a file in bytes."""
        return os.stat(self._place(entry, name)).st_size

    def _read(self, entry: Entry, name: str) -> bytes:
        return Path(self._place(entry, name)).read_bytes()

    def _write(self, entry: Entry, name: str, contents: bytes) -> None:
        """Write a file completely or not at all, and wait until it is on the disk."""
        temporary = self._place(entry, f"{name}.{uuid.uuid4().hex}.tmp")
        try:
            with open(temporary, "xb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._place(entry, name))
        except BaseException:
            with suppress(OSError):
                os.remove(temporary)
            raise
        _sync(self._place(entry))

    def save(self, entry: Entry, name: str, state: Any) -> str:
        """Write a state as a file of a checkpoint, wait until it is on the disk, and return its checksum.

        Args:
            entry: the checkpoint.
            name: of the file.
            state: as ``telegrad.save`` takes it.
        """
        save(state, self._place(entry, name))
        return checksum_of(self._place(entry, name))

    def load(self, entry: Entry, name: str) -> tuple[Any, str]:
        """Return the state in a file of a checkpoint, and the checksum that it was read with.

        Raises:
            CheckpointError: the file is damaged.
            OSError: it cannot be read.
        """
        checksum = checksum_of(self._place(entry, name))
        return load(self._place(entry, name)), checksum  # load() compares the contents with it

    def remove(self, entry: Entry) -> None:
        """Remove a checkpoint: its index first, so that no half one counts. Of a link, only the link is removed."""
        place = os.path.join(self.path, entry.name)
        if os.path.islink(place):
            os.remove(place)
            return
        with suppress(FileNotFoundError, NotADirectoryError):
            os.remove(self._place(entry, INDEX))
        shutil.rmtree(place, ignore_errors=True)


def checksum_of(path: str) -> str:
    """Return the checksum in the header of a file.

    Args:
        path: the file.

    Raises:
        CheckpointError: it is not in the format.
    """
    try:
        with safe_open(path, framework="np") as opened:
            return str((opened.metadata() or {}).get("telegrad.sha256"))
    except SafetensorError as error:
        raise CheckpointError(f"{os.path.basename(path)} is not a safetensors file: {error}") from error


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
