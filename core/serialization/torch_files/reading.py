"""PyTorch's two forms of a file: a zip archive of a pickle and the tensors' memory, and, before 1.6, a sequence of pickles."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import dtype_by_name
from ...types import Array
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
    if file.read(1) == _SEQUENCE[:1]:
        return _read_sequence(file)
    try:
        with zipfile.ZipFile(file) as archive:
            return _read_archive(archive)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise ValueError(f"its archive is damaged: {error}") from error


def _read_archive(archive: zipfile.ZipFile) -> Any:
    names = archive.namelist()
    folder = names[0].partition("/")[0] + "/" if names else ""
    if f"{folder}data.pkl" not in names or f"{folder}constants.pkl" in names:
        raise ValueError(
            "it is an archive of another kind, such as TorchScript's; save the module's state_dict() instead"
        )
    swapped = f"{folder}byteorder" in names and archive.read(f"{folder}byteorder") != sys.byteorder.encode()
    storages: dict[str, Stored] = {}

    def stored(identity: Any) -> Stored:
        storage, key, count = _parts(identity)
        if key not in storages:
            array = _empty(storage, count, archive.getinfo(f"{folder}data/{key}").file_size)
            with archive.open(f"{folder}data/{key}") as record:
                _fill(array, record)
            storages[key] = Stored(array.byteswap(inplace=True) if swapped else array)
        return storages[key]

    return evaluate(io.BytesIO(archive.read(f"{folder}data.pkl")), NAMES, stored)


def _read_sequence(file: Any) -> Any:
    with io.FileIO(file.fileno(), closefd=False) as raw:
        buffered = io.BufferedReader(raw)
        buffered.seek(len(_SEQUENCE))
        evaluate(buffered, {}, _refuse)  # version of the form
        swapped = evaluate(buffered, {}, _refuse).get("little_endian", True) != (sys.byteorder == "little")
        storages: dict[str, Stored] = {}
        stored = _allocate(storages, os.fstat(file.fileno()).st_size)
        place = buffered.tell()
        evaluate(buffered, NAMES, stored)  # makes the storages, which are filled with what follows
        for key in evaluate(buffered, {}, _refuse):
            array = storages[key].array
            if _COUNT.unpack(buffered.read(_COUNT.size))[0] != array.size:
                raise ValueError(f"its storage {key} has another size than the pickle says")
            _fill(array, buffered)
            if swapped:
                array.byteswap(inplace=True)
        buffered.seek(place)
        return evaluate(buffered, NAMES, stored)


def _allocate(storages: dict[str, Stored], size: int) -> Callable[[Any], Stored]:
    """Return the function that makes storages, filled later, of a file of ``size`` bytes."""

    def stored(identity: Any) -> Stored:
        storage, key, count = _parts(identity[:5] if len(identity) == 6 and identity[5] is None else identity)
        if key not in storages:
            storages[key] = Stored(_empty(storage, count, size))
        return storages[key]

    return stored


def _refuse(identity: Any) -> Any:
    raise ValueError(f"its pickle has a storage where none can be: {identity!r}")


def _parts(identity: Any) -> tuple[Storage, str, int]:
    """Return the class, the key and the number of elements of a storage's persistent id."""
    kind, storage, key, _location, count = identity
    if kind != "storage" or not isinstance(storage, Storage) or type(key) is not str or type(count) is not int:
        raise ValueError(f"its pickle has an unknown kind of storage: {identity!r}")
    return storage, key, count


def _empty(storage: Storage, count: int, size: int) -> Array:
    dtype = dtype_by_name(storage.dtype or "uint8")
    if not 0 <= count * dtype.itemsize <= size:
        raise ValueError(f"it holds {size} bytes for {count} elements of {dtype}")
    return np.empty(count, dtype)


def _fill(array: Array, file: Any) -> None:
    place = array.view(np.uint8).data
    while place:
        piece = file.read(min(len(place), _PIECE))
        if not piece:
            raise ValueError("it ends before its tensors do")
        place[: len(piece)] = piece
        place = place[len(piece) :]
