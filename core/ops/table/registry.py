"""Registry of operations, from which the public functions, the methods of tensors and the stubs are made.

Declarations (``operation``) enter operations here; no other module lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...tensors import Tensor

PACKAGE = __name__.partition(".")[0]


class Method(NamedTuple):
    """Attribute of ``Tensor``: its value, the operation that it is a form of, and the kind of form."""

    value: Any
    operation: Callable[..., Any]
    kind: str  # "method", "in_place", "property" or "operator"


# Every operation by its own name, in-place forms included: for modes, and for the check that each has a test.
OPERATIONS: dict[str, Callable[..., Any]] = {}
# Public functions by their name in the package: "add", "linalg.norm".
FUNCTIONS: dict[str, Callable[..., Any]] = {}
# Methods and properties of tensors by name: "add", "add_", "__add__", "T".
METHODS: dict[str, Method] = {}


def functions_of(namespace: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of a namespace, as "linalg", by name; those of ``telegrad`` itself for ""."""
    paths = {path: path.rpartition(".") for path in FUNCTIONS}
    return {name: FUNCTIONS[path] for path, (where, _, name) in paths.items() if where == namespace}


def named(operation: Any, name: str, doc: str, module: str | None = None) -> Any:
    """Give a closure its public name and docstring, enter it into ``OPERATIONS``, and return it.

    Args:
        operation: the closure.
        name: its name.
        doc: its docstring.
        module: module in which pickle, and so another worker, finds it by its name; ``telegrad`` if ``None``.
    """
    operation.__name__ = operation.__qualname__ = name
    operation.__module__ = PACKAGE if module is None else module
    operation.__doc__ = doc
    OPERATIONS[name] = operation
    return operation


def attach(name: str, value: Any, operation: Callable[..., Any], kind: str) -> None:
    """Make ``value`` an attribute of ``Tensor``.

    Args:
        name: name of the attribute.
        value: a function; the getter for a property.
        operation: the operation that it is a form of.
        kind: "method", "in_place", "property" or "operator".
    """
    METHODS[name] = Method(value, operation, kind)
    setattr(Tensor, name, property(value) if kind == "property" else value)
