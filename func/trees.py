"""Trees: dicts, lists and tuples, of any depth, with tensors at their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..core import Tensor


def leaves(tree: Any) -> list[Tensor]:
    """Return the tensors of a tree, in order; anything else in it is passed over."""
    if isinstance(tree, Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ()
    return [tensor for part in parts for tensor in leaves(part)]


def replaced(tree: Any, tensors: Iterable[Any]) -> Any:
    """Return a tree of the same form with other values, in order, in the places of its tensors."""
    return _replaced(tree, iter(tensors))


def _replaced(tree: Any, values: Iterator[Any]) -> Any:
    if isinstance(tree, Tensor):
        return next(values)
    if isinstance(tree, dict):
        return type(tree)((key, _replaced(part, values)) for key, part in tree.items())
    if isinstance(tree, (list, tuple)):
        parts = [_replaced(part, values) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def checked(tree: Any, name: str) -> list[Tensor]:
    """Return the tensors of a tree that must hold nothing else.

    Raises:
        ValueError: it holds something else, or no tensor.
    """
    found = leaves(tree)
    if not found or any(not isinstance(value, Tensor) for value in _ends(tree)):
        raise ValueError(f"{name} must be a tensor, or dicts, lists and tuples of tensors, and you gave {tree!r}")
    return found


def _ends(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (dict, list, tuple)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _ends(part)
    else:
        yield tree
