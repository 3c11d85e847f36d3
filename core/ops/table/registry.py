"""The registry of operations: all that users and type checkers are offered follows from it.

Operations are entered by their declarations (``operation``); no other module lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...tensors import Tensor

PACKAGE = __name__.partition(".")[0]


class Method(NamedTuple):
    """An attribute of ``Tensor``: what stands there, of which operation it is a form, and the kind of form."""

    value: Any
    operation: Callable[..., Any]
    kind: str  # "method", "in_place", "property" or "operator"


# Every operation by its own name, in-place forms too: for modes, and for the check that each has a test.
OPERATIONS: dict[str, Callable[..., Any]] = {}
# What users call, by its place in the package: "add", "linalg.norm".
FUNCTIONS: dict[str, Callable[..., Any]] = {}
# What tensors have, by its name: "add", "add_", "__add__", "T".
METHODS: dict[str, Method] = {}


def functions_of(namespace: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of a namespace, as ``"linalg"``, by name; those of ``telegrad`` itself for ``""``."""
    places = {place: place.rpartition(".") for place in FUNCTIONS}
    return {name: FUNCTIONS[place] for place, (where, _, name) in places.items() if where == namespace}


def named(operation: Any, name: str, doc: str, module: str | None = None) -> Any:
    """Give a closure the name and docstring that users see, and enter it into ``OPERATIONS``.

    Pickle, and so another worker, finds the function by its module (``telegrad`` by default) and name.
    """
    operation.__name__ = operation.__qualname__ = name
    operation.__module__ = PACKAGE if module is None else module
    operation.__doc__ = doc
    OPERATIONS[name] = operation
    return operation


def attach(name: str, value: Any, operation: Callable[..., Any], kind: str) -> None:
    """Make ``value`` an attribute of ``Tensor``."""
    METHODS[name] = Method(value, operation, kind)
    setattr(Tensor, name, property(value) if kind == "property" else value)
