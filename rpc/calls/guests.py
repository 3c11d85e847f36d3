"""Usual arrays of another library in bodies without a pickle: the library's name is before the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..wire.libraries.array_library import LibraryTensor, from_tables
from ..wire.libraries.registry import library_named, loaded_library, usual_libraries

if TYPE_CHECKING:
    from ..wire.messages import Incoming


def stand_in(arrays: tuple[Any, ...]) -> tuple[LibraryTensor, ...] | None:
    """Return the stand-ins of a library's usual arrays; ``None`` if one is of another kind, or is there twice."""
    if len(set(map(id, arrays))) < len(arrays):
        return None
    library = usual_libraries[type(arrays[0])]
    kind, details = library.usual or (None, ())
    made = []
    for array in arrays:
        if type(array) is not kind or getattr(array, "__dict__", None):
            return None
        try:
            packed = library.pack(array)
        except TypeError:  # the pickler raises it again, and says which argument it is
            return None
        if packed is None or packed.details != details or packed.device:
            return None
        made.append(LibraryTensor(library, array, packed))
    return tuple(made)


def name_before(stand_ins: tuple[LibraryTensor, ...]) -> bytes:
    """Return what is before a body: the length of the library's name, and the name."""
    name = stand_ins[0].library.name.encode()
    return bytes((len(name),)) + name


def can_be_made(message: Incoming) -> bool:
    """Return whether the arrays of a message can be made here, for any thread: without importing their library first."""
    library = loaded_library(_name(message))
    return library is not None and library.is_neutral()


def make_arrays(message: Incoming) -> None:
    """Put the library's arrays in the places of the tensors of a message, and leave the body without the library's name.

    Raises:
        MissingLibraryError: the library cannot be imported here.
        TypeError: the library has no usual arrays here.
    """
    library, attached = library_named(_name(message)), message.attached
    if library.usual is None:
        raise TypeError(f"arrays of {library.name} arrived, and their adapter here has no usual arrays")
    details = library.usual[1]
    attached.tensors = [from_tables(tensor, library, details) for tensor in attached.tensors]
    message.pickled = message.pickled[1 + message.pickled[0] :]


def _name(message: Incoming) -> str:
    pickled = message.pickled
    return str(pickled[1 : 1 + pickled[0]], "utf-8")
