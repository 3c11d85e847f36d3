"""PyTorch's two forms of a file: a zip archive of a pickle and the tensors' memory, and, before 1.6, a sequence of pickles."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import zipfile
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from ...dtypes import dtype_by_name
from ...types import Array
from ..limits import Limits
from .names import NAMES, Storage, Stored
from .opcodes import evaluate

_ZIP = b"PK\x03\x04"
_SEQUENCE = pickle.dumps(0x1950A86A20F9469CFC6C, 2)  # the older form begins with ``torch.serialization.MAGIC_NUMBER``
_COUNT = struct.Struct("<q")
_PIECE = 1 << 20  # bytes that are read at a time


def is_torch_file(file: Any) -> bool:
    """Return whether an open file begins like one that ``torch.save`` wrote."""
    file.seek(0)
    start = file.read(len(_SEQUENCE))
    return bool(start.startswith(_ZIP) or start == _SEQUENCE)


def read_torch_file(file: Any) -> Any:
    """Return the object of an open file that ``torch.save`` wrote. Its tensors share memory as they did there.

    Raises:
        ValueError: the file is damaged, or holds anything else than tensors, dtypes, sizes, devices, numbers, strings and
            bytes in dicts, lists, tuples and sets.
        ImportError: it holds numbers of a type of the package ``ml_dtypes``, which is not installed.
    """
    file.seek(0)
    size = os.fstat(file.fileno()).st_size
    if file.read(1) == _SEQUENCE[:1]:
        return _read_sequence(file, size)
    with zipfile.ZipFile(file) as archive:
        return _read_archive(archive, Limits(size))


def _read_archive(archive: zipfile.ZipFile, limits: Limits) -> Any:
    names = archive.namelist()
    folder = names[0].partition("/")[0] + "/" if names else ""
    if f"{folder}data.pkl" not in names or f"{folder}constants.pkl" in names:
        raise ValueError(
            "it is an archive of another kind, such as TorchScript's; save the module's state_dict() instead"
        )
    order = f"{folder}byteorder"
    swapped = order in names and _octets(archive, order, limits) != sys.byteorder.encode()
    storages: dict[str, Stored] = {}

    def stored(identity: Any) -> Stored:
        storage, key, count = _parts(identity)
        if key not in storages:
            name = f"{folder}data/{key}"
            array = _blank(storage, count, archive.getinfo(name).file_size, limits)
            with _opened(archive, name) as record:
                _fill(array, record)
            storages[key] = Stored(array.byteswap(inplace=True) if swapped else array, limits)
        return storages[key]

    return evaluate(io.BytesIO(_octets(archive, f"{folder}data.pkl", limits)), NAMES, stored, limits)


def _octets(archive: zipfile.ZipFile, name: str, limits: Limits) -> bytes:
    """Return a record of an archive, which may be compressed."""
    limits.allocate(length := archive.getinfo(name).file_size)
    with _opened(archive, name) as record:
        return record.read(length)


def _opened(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"its record {name!r} is compressed in a way that torch.load() does not read either")
    return archive.open(name)  # zipfile expands other ways of compression without a bound


class _Pickles(io.BufferedReader):
    """File of pickles, in which a length that is not there takes no memory."""

    def __init__(self, file: Any, size: int) -> None:
        super().__init__(io.FileIO(file.fileno(), closefd=False))
        self._size = size

    def read(self, size: int | None = -1) -> bytes:
        """Return up to ``size`` bytes, all that follow by default."""
        left = max(self._size - self.tell(), 0)
        return super().read(left if size is None or size < 0 else min(size, left))


def _read_sequence(file: Any, size: int) -> Any:
    limits = Limits(size)
    with _Pickles(file, size) as pickles:
        pickles.seek(len(_SEQUENCE))
        evaluate(pickles, {}, _refuse, limits)  # version of the form
        swapped = evaluate(pickles, {}, _refuse, limits).get("little_endian", True) != (sys.byteorder == "little")
        storages: dict[str, Stored] = {}
        stored = _allocate(storages, size, limits)
        place = pickles.tell()
        # Makes the storages, which are filled with what follows. Until then they are zeros, because indices are checked.
        evaluate(pickles, NAMES, stored, limits)
        for key in evaluate(pickles, {}, _refuse, limits):
            if type(key) is not str:
                raise ValueError("its storages have other names than texts")
            array = storages[key].array
            if _COUNT.unpack(pickles.read(_COUNT.size))[0] != array.size:
                raise ValueError(f"its storage {key} has another size than the pickle says")
            _fill(array, pickles)
            if swapped:
                array.byteswap(inplace=True)
        pickles.seek(place)
        return evaluate(pickles, NAMES, stored, Limits(size))


def _allocate(storages: dict[str, Stored], size: int, limits: Limits) -> Callable[[Any], Stored]:
    """Return the function that makes storages, filled later, of a file of ``size`` bytes."""

    def stored(identity: Any) -> Stored:
        storage, key, count = _parts(identity[:5] if len(identity) == 6 and identity[5] is None else identity)
        if key not in storages:
            storages[key] = Stored(_blank(storage, count, size, limits), limits)
        return storages[key]

    return stored


def _refuse(_: Any) -> Any:
    raise ValueError("its pickle has a storage where none can be")


def _parts(identity: Any) -> tuple[Storage, str, int]:
    """Return the class, the key and the number of elements of a storage's persistent id."""
    kind, storage, key, _location, count = identity
    if not isinstance(storage, Storage) or type(kind) is not str or type(key) is not str or type(count) is not int:
        raise ValueError("its pickle has an unknown kind of storage")
    if kind != "storage":
        raise ValueError(f"its pickle has an unknown kind of storage, {kind[:100]!r}")
    return storage, key, count


def _blank(storage: Storage, count: int, size: int, limits: Limits) -> Array:
    dtype = dtype_by_name(storage.dtype or "uint8")
    if not 0 <= count * dtype.itemsize <= size:
        raise ValueError(f"it holds {size} bytes for {count} elements of {dtype}")
    limits.allocate(count * dtype.itemsize)
    return np.zeros(count, dtype)


def _fill(array: Array, file: Any) -> None:
    place = array.view(np.uint8).data
    while place:
        piece = file.read(min(len(place), _PIECE))
        if not piece:
            raise ValueError("it ends before its tensors do")
        place[: len(piece)] = piece
        place = place[len(piece) :]
