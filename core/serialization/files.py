"""``save`` and ``load``: nested Python objects with tensors, in one safetensors file, without pickle.

The tensors are the file's tensors, under names made of their places ("model.0.weight"), so any reader of the format sees
them. What they hang on is JSON in the metadata (``structure.py``), beside a SHA-256 of the whole file. The file
is written under another name and moved into place when it is complete.
"""

from __future__ import annotations

import json
import os
import uuid
from typing import Any, BinaryIO, TypeAlias

from ..errors import TelegradError
from ..tensors import Tensor
from ..types import Array
from .safetensors_file import CHECKSUM, read_tensors, write_tensors
from .structure import Decoder, Encoder

Path: TypeAlias = str | os.PathLike[str]

_STRUCTURE = "telegrad.structure"
# What parsing and decoding raise for nonsense that happens to be JSON.
_NONSENSE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, StopIteration)


class CheckpointError(TelegradError, RuntimeError):
    """A file is not what ``save`` wrote: it was cut off, altered, or is something else. The message names it."""


def save(obj: Any, f: Path | BinaryIO) -> None:
    """Write ``obj`` to a file, in one piece or not at all: who reads meanwhile sees the former file.

    Args:
        obj: a tensor, array, ``None``, bool, number, string or bytes, or dicts, lists and tuples of such. Tensors over the
            very same elements share memory again after ``load``; views of parts of others become tensors of their own.
        f: where to. A file that is there is replaced; into an open binary file, which must be seekable, it is written as
            it is.

    Raises:
        TypeError: an object of another kind; the message says where in ``obj`` it is.
        ValueError: a container holds itself.
    """
    encoder = Encoder()
    metadata = {_STRUCTURE: json.dumps(encoder.encode(obj, "checkpoint", ()))}
    if isinstance(f, (str, os.PathLike)):
        _replace(os.path.realpath(f), encoder.arrays, metadata)
    else:
        write_tensors(f, encoder.arrays, metadata)


def load(f: Path | BinaryIO, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what ``save`` wrote. Of a safetensors file from elsewhere: its tensors by name.

    Args:
        f: a path, or an open binary file that is seekable.
        map_location: ``None`` or ``"cpu"``, where tensors live in any case.
        weights_only: has no meaning: nothing that is loaded can run code.

    Raises:
        CheckpointError: the file was cut off or altered, or is no safetensors file.
        FileNotFoundError: there is none.
        ImportError: it holds numbers of a type that only the package ``ml_dtypes`` knows.
    """
    if map_location not in (None, "cpu"):
        raise ValueError(
            f"tensors live on the CPU, so map_location can be None or 'cpu', and you gave {map_location!r}"
        )
    if not isinstance(f, (str, os.PathLike)):
        return _read(f, str(getattr(f, "name", f)))
    with open(f, "rb", buffering=0) as file:
        return _read(file, os.fspath(f))


def _read(file: Any, name: str) -> Any:
    try:
        arrays, metadata, checksum = read_tensors(file)
    except _NONSENSE as error:
        raise CheckpointError(f"{name} cannot be read as a checkpoint: {error}") from error
    if _STRUCTURE not in metadata and CHECKSUM not in metadata:
        return {key: Tensor(array) for key, array in arrays.items()}
    if metadata.get(CHECKSUM) != checksum:
        raise CheckpointError(
            f"{name} is damaged: its contents do not have the checksum they were saved with; "
            "use another copy of it, or an earlier checkpoint"
        )
    try:
        return Decoder(arrays).decode(json.loads(metadata[_STRUCTURE]))
    except _NONSENSE as error:
        raise CheckpointError(f"{name} holds a structure that this version does not know: {error!r}") from error


def _replace(target: str, arrays: dict[str, Array], metadata: dict[str, str]) -> None:
    temporary = f"{target}.{uuid.uuid4().hex}.tmp"
    try:
        with open(temporary, "xb", buffering=0) as file:
            write_tensors(file, arrays, metadata)
            # Without this, a machine that loses power may keep the new name and lose the contents.
            os.fsync(file.fileno())
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
