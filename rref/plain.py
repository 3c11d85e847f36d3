"""Plain values: pickling and freeing them runs no user code, so threads that read may do it."""

from __future__ import annotations

from typing import Any
from weakref import getweakrefcount

from ..core.extend import Tensor
from ..core.futures import Future
from ..rpc.extend import usual_libraries

PLAIN_TYPES = frozenset({type(None), bool, int, float, complex})
QUICK_BYTES = 65_536


def is_plain(value: Future[Any]) -> bool:
    """Return whether pickling a value that exists, in this thread, runs no user code, and takes little time."""
    if value.exception() is not None:
        return False
    plain = value.value()
    if type(plain) is Tensor:
        return not plain.__dict__ and plain.nbytes <= QUICK_BYTES
    if (library := usual_libraries.get(type(plain))) is not None:
        quick = not getattr(plain, "__dict__", None) and library.is_at_hand(plain) and library.is_neutral()
        return quick and plain.nbytes <= QUICK_BYTES
    return type(plain) in PLAIN_TYPES or (type(plain) in (str, bytes) and len(plain) <= QUICK_BYTES)


def frees_quietly(value: Future[Any] | None) -> bool:
    """Return whether freeing a value runs no user code and takes little time: it has no finalizer and no graph."""
    if value is None:
        return True
    if not (value.done() and is_plain(value)):
        return False
    plain = value.value()
    if type(plain) in usual_libraries:  # it may be the last that keeps a graph
        return False
    return type(plain) is not Tensor or not (getweakrefcount(plain) or _keeps_more(plain))


def _keeps_more(tensor: Tensor) -> bool:
    """Return whether a tensor keeps other objects: a graph, hooks, a gradient, another tensor, or a user's memory."""
    array: Any = tensor._array
    kept = (tensor.grad_fn, tensor._hooks, tensor._grad, tensor._view, tensor._views, array.base)
    return any(each is not None for each in kept) or bool(getweakrefcount(array))
