"""Libraries under test: a file for each, which says how it calls a function on another worker."""

from __future__ import annotations

import importlib

from .base import Api, Library, Place, UnsupportedError

__all__ = ["Api", "Library", "Place", "UnsupportedError", "api_here", "load"]

_loaded: list[Library] = []


def load(name: str, transport: str) -> Library:
    """Return the library of that name, as it is imported in this process from now on."""
    made: Library = importlib.import_module(f"{__name__}.{name}").make(transport)
    _loaded[:] = [made]
    return made


def api_here() -> Api:
    """Return the modules of this process's library, for functions that run on other workers than the measuring one."""
    return _loaded[0].api()
