"""``save`` and ``load``: nested Python objects with tensors, in one safetensors file, without pickle, or in a file of PyTorch.

Tensors are named after their places in the object ("model.0.weight"), so any reader of the format sees them. The object
around them is JSON in the metadata (``structure.py``), beside a SHA-256 of the whole file. ``torch_files/`` reads and writes
PyTorch's form. The file is written under another name and moved into place when it is complete.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Literal, TypeAlias

from ..errors import TelegradError
from ..tensors import Tensor
from .safetensors_file import CHECKSUM, DamagedError, read_file, write_file
from .structure import Decoder, Encoder
from .torch_files import is_torch_file, read_torch_file, write_torch_file

Path: TypeAlias = str | os.PathLike[str]

_STRUCTURE = "telegrad.structure"
# Errors of parsing and decoding a file that is damaged, or not a checkpoint.
_NONSENSE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, StopIteration, struct.error)


class CheckpointError(TelegradError, RuntimeError):
    """A file is not a checkpoint that ``save`` wrote: it was cut off, altered, or is of another kind."""


def save(obj: Any, f: Path | BinaryIO, *, format: Literal["safetensors", "torch"] = "safetensors") -> None:
    """Write ``obj`` to a file, completely or not at all: concurrent readers see the former file.

    Args:
        obj: a tensor, array, ``None``, bool, number, string or bytes, or dicts, lists and tuples of such. Tensors over the
            very same elements share memory again after ``load``; views of parts of others become tensors of their own.
        f: a path, whose file is replaced; or an open binary file, into which a temporary file is copied.
        format: ``"torch"`` writes the file that ``torch.load`` reads, with all of the memory that a tensor is a view of.

    Raises:
        TypeError: an object cannot be saved; the message says where in ``obj`` it is.
        ValueError: a container holds itself; or ``format`` is another.
    """
    if format not in _WRITERS:
        raise ValueError(f"format must be 'safetensors' or 'torch', and you gave {format!r}")
    if isinstance(f, (str, os.PathLike)):
        _replace(os.path.realpath(f), obj, _WRITERS[format])
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        _WRITERS[format](path, obj)
        with open(path, "rb") as file:
            shutil.copyfileobj(file, f)


def _write_safetensors(path: str, obj: Any) -> None:
    encoder = Encoder()
    metadata = {_STRUCTURE: json.dumps(encoder.encode(obj, "checkpoint", ()))}
    write_file(path, encoder.arrays, metadata)


_WRITERS: dict[str, Callable[[str, Any], None]] = {"safetensors": _write_safetensors, "torch": write_torch_file}


def load(f: Path | BinaryIO, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read a file that ``save`` or ``torch.save`` wrote; of another safetensors file, return its tensors by name.

    A pickle of PyTorch's is read by an interpreter that makes tensors, dtypes, sizes, devices, numbers, strings, bytes, and
    dicts, lists, tuples and sets of them, and nothing else. Parameters come as tensors that require gradients.

    Args:
        f: a path; or an open binary file, which is copied to a temporary file.
        map_location: anything that can mean the CPU, where all tensors are: ``None``, ``"cpu"``, a function, or a dict of
            devices to it.
        weights_only: has no effect: no loaded file can run code.

    Raises:
        CheckpointError: the file was cut off or altered, is of another kind, or names what a checkpoint may not name.
        FileNotFoundError: there is no such file.
        ImportError: it holds numbers of a type of the package ``ml_dtypes``, which is not installed.
        ValueError: ``map_location`` is another device.
    """
    if not callable(map_location) and any(place not in (None, "cpu") for place in _places(map_location)):
        raise ValueError(
            f"all tensors are on the CPU, so map_location can be None or 'cpu', and you gave {map_location!r}"
        )
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb", buffering=0) as file:
            return _read(file, os.fspath(f))
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(f, copy)
        copy.flush()
        return _read(copy, str(getattr(f, "name", f)))


def _places(map_location: Any) -> Iterable[Any]:
    return map_location.values() if isinstance(map_location, Mapping) else (map_location,)


def _read(file: Any, name: str) -> Any:
    try:
        if is_torch_file(file):
            return read_torch_file(file)
        arrays, metadata = read_file(file)
    except DamagedError as error:
        raise _damaged(name) from error
    except _NONSENSE as error:
        raise CheckpointError(f"{name} cannot be read as a checkpoint: {error}") from error
    if _STRUCTURE not in metadata and CHECKSUM not in metadata:
        return {key: Tensor(array) for key, array in arrays.items()}
    if CHECKSUM not in metadata:
        raise _damaged(name)
    try:
        return Decoder(arrays).decode(json.loads(metadata[_STRUCTURE]))
    except _NONSENSE as error:
        raise CheckpointError(f"{name} holds a structure that this version does not know: {error!r}") from error


def _damaged(name: str) -> CheckpointError:
    return CheckpointError(
        f"{name} is damaged: its contents do not have the checksum they were saved with; "
        "use another copy of it, or an earlier checkpoint"
    )


def _replace(target: str, obj: Any, write: Callable[[str, Any], None]) -> None:
    temporary = f"{target}.{uuid.uuid4().hex}.tmp"
    try:
        write(temporary, obj)
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
    _sync_folder(os.path.dirname(target))


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
