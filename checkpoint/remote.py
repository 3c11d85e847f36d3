"""``RemoteFolder``: checkpoints on a file system of fsspec: object stores, ``memory://``, ``hdfs://``, ``sftp://``, ..."""

from __future__ import annotations

import importlib
import os
import tempfile
from contextlib import suppress
from typing import Any

from ..base.arguments import check_type
from ..core.serialization import CheckpointError, load, save
from .folder import INDEX, Entry, Folder, checksum_of
from .lock import NoLock


class RemoteFolder(Folder):
    """Checkpoints at an address such as ``s3://bucket/run``. A file is made here, then sent; the index is sent last.

    There are no locks there. A second writer is noticed when the next checkpoint is begun.

    Args:
        address: with a protocol that fsspec knows.

    Raises:
        ImportError: the package fsspec, or the one that it needs for this protocol, is not installed.
        ValueError: it does not know the protocol.
    """

    def __init__(self, address: str) -> None:
        try:
            fsspec: Any = importlib.import_module("fsspec")
        except ImportError as error:
            raise ImportError(f"{address} needs fsspec: pip install fsspec") from error
        self.path = address
        self._files, self._root = fsspec.core.url_to_fs(address)
        self._begun = 0

    def begin(self, step: int) -> Entry:
        newest = max((entry.number for entry in self.entries(complete=False)), default=0)
        if self._begun and newest > self._begun:
            raise CheckpointError(f"another writer saves in {self}: give each training a folder of its own")
        entry = super().begin(step)
        self._begun = entry.number
        return entry

    def lock(self) -> NoLock:
        return NoLock()

    def _names(self) -> list[str]:
        self._files.invalidate_cache()
        if not self._files.isdir(self._root):
            return []
        return [path.rstrip("/").rpartition("/")[2] for path in self._files.ls(self._root, detail=False)]

    def _make(self, entry: Entry) -> None:
        self._files.makedirs(self._place(entry).rstrip("/"), exist_ok=True)  # nothing, where there are no folders

    def _place(self, entry: Entry, name: str = "") -> str:
        return f"{self._root.rstrip('/')}/{entry.name}/{name}"

    def exists(self, entry: Entry, name: str) -> bool:
        return bool(self._files.isfile(self._place(entry, name)))

    def size(self, entry: Entry, name: str) -> int:
        return int(self._files.size(self._place(entry, name)))

    def _read(self, entry: Entry, name: str) -> bytes:
        return bytes(self._files.cat_file(self._place(entry, name)))

    def _write(self, entry: Entry, name: str, contents: bytes) -> None:
        self._files.pipe_file(self._place(entry, name), contents)

    def save(self, entry: Entry, name: str, state: Any) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            save(state, path)
            self._files.put_file(path, self._place(entry, name))
            return checksum_of(path)

    def load(self, entry: Entry, name: str) -> tuple[Any, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            self._files.get_file(self._place(entry, name), path)
            return load(path), checksum_of(path)

    def remove(self, entry: Entry) -> None:
        with suppress(FileNotFoundError):
            self._files.rm_file(self._place(entry, INDEX))
        with suppress(FileNotFoundError):
            self._files.rm(self._place(entry).rstrip("/"), recursive=True)


def open_folder(path: str | os.PathLike[str]) -> Folder:
    """Return the folder at a path, or at an address with a protocol.

    Args:
        path: as ``runs/first`` or ``s3://bucket/first``.
    """
    check_type("folder", path, (str, os.PathLike), "a path, or an address like s3://bucket/runs")
    return RemoteFolder(path) if isinstance(path, str) and "://" in path else Folder(path)
