"""Search for the part of an object that cannot be pickled, so that the error can name it: ``argument 0 .model .lock``."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

from .libraries.registry import library_of

DEPTH = 12
OWN_WAYS = ("__reduce_ex__", "__reduce__", "__getstate__")  # methods by which a class says how it is pickled


def find_unpicklable(parts: list[tuple[str, Any]], attempt: Callable[[Any], object]) -> str:
    """Return the path to the innermost part on which ``attempt`` raises, starting from the labelled ``parts``."""
    for label, part in parts:
        if _fails(part, attempt):
            return _descend(label, part, attempt)
    return " and ".join(label for label, _ in parts) or "the message"


def _descend(path: str, obj: Any, attempt: Callable[[Any], object]) -> str:
    for _ in range(DEPTH):
        for step, child in _children(obj):
            if _fails(child, attempt):
                path, obj = path + step, child
                break
        else:
            break
    return f"{path} ({type(obj).__module__}.{type(obj).__qualname__})"


def _children(obj: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, dict):
        yield from ((f"[{key!r}]", value) for key, value in obj.items())
    elif isinstance(obj, (list, tuple, set, frozenset)):
        yield from ((f"[{index}]", value) for index, value in enumerate(obj))
    elif not (hasattr(type(obj), "__array__") and library_of(obj)) and not _refuses(obj):  # else as a whole
        yield from ((f".{name}", value) for name, value in _attributes(obj))
        yield from _closure(obj)


def _refuses(obj: Any) -> bool:
    """Return whether the object's class says how it is pickled, and that raises: its attributes have no part in it."""
    own = any(getattr(type(obj), name, None) is not getattr(object, name, None) for name in OWN_WAYS)
    return own and _fails(obj, lambda each: each.__reduce_ex__(pickle.DEFAULT_PROTOCOL))


def _attributes(obj: Any) -> Iterator[tuple[str, Any]]:
    attributes = getattr(obj, "__dict__", None)
    if isinstance(attributes, dict):
        yield from attributes.items()
    for kind in type(obj).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(obj, name):
                yield name, getattr(obj, name)


def _closure(function: Any) -> Iterator[tuple[str, Any]]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(names, cells):
        try:
            yield f" (its variable {name!r})", cell.cell_contents
        except ValueError:
            continue  # the variable was never set


def _fails(obj: Any, attempt: Callable[[Any], object]) -> bool:
    try:
        attempt(obj)
    except Exception:
        return True
    return False
