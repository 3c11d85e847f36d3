"""Registry of array libraries, by the root of their module names.

A library is not imported before the program imports it: an object whose class is of the library exists only then. A receiver
imports the library when an array of it arrives. Names in messages are looked up here, so no message can have another module
imported.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import Any

from .array_library import ArrayLibrary

_ADAPTERS = {
    "torch": ("torch", ".torch_tensors"),
    "jax": ("jax", ".jax_arrays"),
    "jaxlib": ("jax", ".jax_arrays"),  # the class of JAX's arrays is there
    "cupy": ("cupy", ".cupy_arrays"),
}
"""Adapters of this package: by root of module names, the library's name and the module, which imports the library."""

_libraries: dict[str, ArrayLibrary] = {}  # by root of module names
_lock = threading.Lock()
usual_libraries: dict[type, ArrayLibrary] = {}  # by class of their usual arrays; for callers, which do not change it


class MissingLibraryError(ImportError):
    """Error: an array of a library arrived that cannot be imported here."""


def register_arrays(library: ArrayLibrary) -> None:
    """Let arrays of a library travel by an adapter. Call it on all workers, before they exchange such arrays.

    Args:
        library: the adapter. Objects whose class, or a base of it, is in the module ``library.name`` or below it are given to
            its ``pack``.

    Raises:
        TypeError: it is no ``ArrayLibrary``.
        ValueError: it has no name, or there is an adapter of that name.
    """
    if not isinstance(library, ArrayLibrary):
        raise TypeError(f"library must be an ArrayLibrary; you gave {type(library).__name__}")
    name = library.name
    if not name or "." in name:
        raise ValueError(f"library.name must be the root of module names, such as 'cupy'; it is {name!r}")
    with _lock:
        if name in _ADAPTERS or name in _libraries:
            raise ValueError(f"there is an adapter for arrays of {name!r} already")
        _add(name, library)


def library_of(value: Any) -> ArrayLibrary | None:
    """Return the adapter of the library that defines the class of an object, or a base of it; ``None`` if there is none."""
    for kind in type(value).__mro__:
        root = str(kind.__module__).partition(".")[0]
        if root in _libraries:
            return _libraries[root]
        if root in _ADAPTERS and hasattr(sys.modules.get(root), "__version__"):  # else a folder that has its name
            return _load(root)
    return None


def library_named(name: Any) -> ArrayLibrary:
    """Return the adapter of a library of which an array arrived.

    Raises:
        MissingLibraryError: the library cannot be imported here, or has no adapter here.
    """
    if name in _libraries:
        return _libraries[name]
    if name not in _ADAPTERS:
        raise MissingLibraryError(f"it has no adapter for arrays of {name!r}; call register_arrays() there, too")
    try:
        return _load(name)
    except ImportError as error:
        raise MissingLibraryError(f"it cannot import {name} ({error}); install {name} there") from error


def put_together(name: str, *parts: Any) -> Any:
    """Return the array of a library whose parts arrived (``ArrayLibrary.take_apart``).

    Args:
        name: name of the library.
        parts: its parts.

    Raises:
        MissingLibraryError: as for ``library_named``.
    """
    return library_named(name).put_together(*parts)


def _load(root: str) -> ArrayLibrary:
    _, module = _ADAPTERS[root]
    library: ArrayLibrary = import_module(module, __package__).library
    with _lock:
        return _add(root, library)


def _add(root: str, library: ArrayLibrary) -> ArrayLibrary:
    library = _libraries.setdefault(root, library)
    if library.usual is not None:
        usual_libraries[library.usual[0]] = library
    return library


def loaded_library(name: str) -> ArrayLibrary | None:
    """Return the adapter of a library if its arrays can be made without importing it first."""
    return _libraries.get(name)
