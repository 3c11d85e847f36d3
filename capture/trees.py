"""Structures of tensors: arguments and results, and their form for comparison."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import nn, optim
from ..core.extend import Generator, Tensor
from .errors import Unrecordable, check_library
from .values import mapped

_PACKAGE = __name__.rpartition(".capture")[0] + "."
_CAPTURE = f"{_PACKAGE}capture."  # compiled functions, which are compared by identity
_BY_IDENTITY = (nn.Module, optim.Optimizer, Generator, types.FunctionType)
_PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis), type, range, np.dtype)


class Number:
    """A number that a call has read and returns; in its place in the result.

    Args:
        place: its number among those that the call has read.
    """

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place


def numbered(tree: Any, numbers: Sequence[float]) -> Any:
    """Return ``tree`` with a ``Number`` in the place of each of some numbers, which are known by their identity."""

    def place(each: Any) -> Any:
        found = [place for place, number in enumerate(numbers) if number is each]
        return Number(found[0]) if found else each

    return mapped(tree, place) if numbers else tree


def keys_of(tree: Any) -> list[Any]:
    """Return the keys of dictionaries in ``tree``."""
    if isinstance(tree, dict):
        return [*tree, *keys_of(list(tree.values()))]
    return [key for each in tree for key in keys_of(each)] if isinstance(tree, (tuple, list)) else []


def tensors_of(tree: Any) -> list[Tensor]:
    """Return the tensors in ``tree``, in order."""
    if isinstance(tree, Tensor):  # the usual case
        return [tree]
    found: list[Tensor] = []
    mapped(tree, lambda each: found.append(each) if isinstance(each, Tensor) else None)
    return found


def form(tree: Any, name: Callable[[Tensor], Any]) -> Any:
    """Return what ``tree`` is, as nested tuples that can be compared and hashed.

    Args:
        tree: tuples, lists, dicts and slices of tensors, numbers, and other objects.
        name: returns what to put in the place of a tensor.

    Raises:
        Unrecordable: there is an array of NumPy, whose elements may change unseen, or an object of another library.
    """
    kind = type(tree)
    if isinstance(tree, Tensor):
        return name(tree)
    if kind is Number:
        return kind, tree.place
    if kind in _PLAIN or isinstance(tree, _PLAIN):
        return kind, tree
    if kind in (float, complex):
        return kind, repr(tree)  # 0.0 is not -0.0, and nan is nan
    if isinstance(tree, (tuple, list)):
        return kind, tuple([form(each, name) for each in tree])
    if kind is dict:
        return kind, tuple([(form(key, name), form(each, name)) for key, each in tree.items()])
    if kind is slice:
        return kind, tuple([form(each, name) for each in (tree.start, tree.stop, tree.step)])
    if isinstance(tree, np.generic):
        return kind, tree.tobytes()
    if isinstance(tree, np.ndarray):
        raise Unrecordable("a NumPy array is an argument, whose elements may change unseen; make it a tensor")
    check_library(kind.__module__)
    if kind.__module__.startswith(_PACKAGE) and hasattr(kind, "_identity"):
        return kind, tree._identity()  # several stand for the same: references to a value of a worker
    ours = kind.__module__.startswith(_PACKAGE) and not kind.__module__.startswith(_CAPTURE)
    if ours and not isinstance(tree, _BY_IDENTITY) and hasattr(tree, "__dict__"):
        if tensors := tensors_of(vars(tree)):
            raise Unrecordable(f"{kind.__name__}, an argument of an operation, holds {len(tensors)} tensors")
        return kind, form(vars(tree), name)  # the library's own, made anew in each call and not changed
    return kind, Same(tree)


class Same:
    """An object that is compared by its identity, and kept alive."""

    __slots__ = ("_object",)

    def __init__(self, given: Any) -> None:
        self._object = given

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other._object is self._object

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"{type(self._object).__name__} at {id(self._object):#x}"
