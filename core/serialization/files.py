"""``save`` and ``load``: nested Python objects with tensors, in one safetensors file, without pickle, or in a file of PyTorch.

Tensors are named after their places in the object ("model.0.weight"), so any reader of the format sees them. The object
around them is JSON in the metadata (``structure.py``), beside a SHA-256 of the whole file. ``torch_files/`` reads and writes
PyTorch's form. The file is written under another name and moved into place when it is complete.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Literal, TypeAlias

from ...base.errors import CheckpointError
from ..tensors import Tensor
from .limits import Limits
from .safetensors_file import CHECKSUM, DamagedError, read_file, write_file
from .structure import Decoder, Encoder
from .torch_files import is_torch_file, read_torch_file, write_torch_file

Path: TypeAlias = str | os.PathLike[str]

_STRUCTURE = "telegrad.structure"
_LONGEST = 500  # characters of an error that a file's contents made


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
        CheckpointError: the file was cut off, altered or made to do harm, is of another kind, or names what a checkpoint may
            not name. Its tensors may take three times its size and 16 MiB; other limits are in ``limits.py``.
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
        return _contents(file)
    except DamagedError as error:
        raise CheckpointError(
            f"{name} is damaged: its contents do not have the checksum they were saved with; "
            "use another copy of it, or an earlier checkpoint"
        ) from error
    except (ImportError, MemoryError):
        raise  # of this machine, not of the file: the limits keep allocations in proportion to it
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # a file can say that a part of it is at a place where none can be
            raise
        raise _unreadable(name, error) from error
    except Exception as error:  # any other: a file that is damaged or no checkpoint can bring any reader to fail anyhow
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> CheckpointError:
    return CheckpointError(f"{name} cannot be read as a checkpoint: {_told(error)}")


def _told(error: Exception) -> str:
    try:
        return (str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}")[:_LONGEST]
    except Exception:  # it names an object of the file that is too deep, or too long, to be printed
        return type(error).__name__


def _contents(file: Any) -> Any:
    if is_torch_file(file):
        return read_torch_file(file)
    arrays, metadata = read_file(file)
    if _STRUCTURE not in metadata and CHECKSUM not in metadata:
        return {key: Tensor(array) for key, array in arrays.items()}
    if CHECKSUM not in metadata:
        raise DamagedError
    limits = Limits(os.fstat(file.fileno()).st_size)
    try:
        return Decoder(arrays, limits).decode(json.loads(metadata[_STRUCTURE]))
    except Exception as error:
        raise ValueError(f"it holds a structure that this version does not know: {_told(error)}") from error


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
