"""Memory of tensors and arrays that users give to be read from, or written to, in place."""

from __future__ import annotations

from typing import Any

from ....base.errors import ArgumentTypeError
from ....core.extend import Tensor, changed
from .array_library import LibraryTensor, PackedArray
from .registry import library_of


def tensor_over(name: str, value: Any, kinds: str = "a dense tensor", use: str = "be used") -> Tensor:
    """Return a dense tensor itself; of an array of another library, a tensor over its memory.

    Args:
        name: of the argument, for errors.
        value: the tensor or array.
        kinds: what the argument may be, for errors.
        use: what it is needed for, for errors: "cannot ...".

    Raises:
        ArgumentTypeError: it is neither, or its memory cannot be used in place.
    """
    if isinstance(value, Tensor) and not value.is_sparse:
        return value
    if isinstance(value, Tensor) or (library := library_of(value)) is None:
        raise ArgumentTypeError(f"{name} must be {kinds}; you gave {type(value).__name__}")
    try:
        return LibraryTensor(library, value, PackedArray(library.memory(value)))
    except TypeError as error:
        raise ArgumentTypeError(f"{name} cannot {use}: {error}") from None


def note_written(value: Any) -> None:
    """Note that elements were written to the memory of a tensor or array, as an operation in place does."""
    if isinstance(value, LibraryTensor):
        value.library.changed(value.original)
    elif isinstance(value, Tensor):
        changed(value)
    elif (library := library_of(value)) is not None:
        library.changed(value)
