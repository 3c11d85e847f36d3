"""Small parameters of one group that are stepped as one flat array.

A call of NumPy takes about as long for 100 elements as for 1,000, and Adam makes twelve for each parameter. So the values and
gradients of small parameters are copied behind one another, and the arithmetic runs once for all of them. It is element-wise,
so the bits are those of a step for each. Parameters keep their memory. The tensors of their states, which an optimizer has
made itself, become parts of flat arrays; where a state was replaced, these are made again.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..core.extend import Array, Tensor

_SMALL = 4_096  # elements; with more, copying costs as much as the calls
_FEWEST = 4  # parameters
_ATTEMPTS = 8  # to make flat arrays; a program that replaces the states more often is left alone
_State = dict[str, Any]
_Update = TypeVar("_Update", bound=Callable[..., Any])


def elementwise(update: _Update) -> _Update:
    """Mark an optimizer's ``update``: each element depends only on those in its place, and numbers only on numbers."""
    update.elementwise = True  # type: ignore[attr-defined]
    return update


class Item(NamedTuple):
    """A parameter that is to be stepped: itself, its array, the array of its gradient, and its state."""

    parameter: Tensor
    array: Array
    grad: Array
    state: _State


class Together:
    """Steps the small parameters of one group."""

    def __init__(self) -> None:
        self._flat: Flat | None = None
        self._attempts = 0
        self._lock = threading.Lock()

    @staticmethod
    def can_step(count: int, update: Callable[..., Any]) -> bool:
        """Return whether some of so many parameters may be stepped as one, by an optimizer's ``update``."""
        return count >= _FEWEST and getattr(update, "elementwise", False)

    def step(self, items: Sequence[Item], update: Callable[..., Any], group: dict[str, Any]) -> list[Item]:
        """Step those that can be stepped as one, and return them; none while another thread does so.

        Args:
            items: the parameters with a dense gradient.
            update: the optimizer's.
            group: its options.
        """
        small = _small(items)
        if len(small) < _FEWEST or not self._lock.acquire(blocking=False):
            return []
        try:
            if self._flat is None or not self._flat.fits(small):
                self._make(small)
            if self._flat is None:
                return []
            self._flat.step(small, update, group)
            return small
        finally:
            self._lock.release()

    def _make(self, items: Sequence[Item]) -> None:
        if self._flat is not None:
            self._flat.release()
            self._flat = None
        if self._attempts < _ATTEMPTS and _alike(items):
            self._attempts += 1
            self._flat = Flat(items)


class Flat:
    """Flat arrays for some parameters: their values, gradients, and the tensors of their states.

    Args:
        items: the parameters, of one dtype; their states are alike.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._shapes = [item.array.shape for item in items]
        ends = np.cumsum([item.array.size for item in items]).tolist()
        self._parts = [slice(end - item.array.size, end) for end, item in zip(ends, items)]
        self._value, self._grad = (np.empty(ends[-1], items[0].array.dtype) for _ in range(2))
        self._values = self._cut(self._value)
        self._state: _State = {}  # for update(): a flat tensor for each name, and the numbers that all have
        self._tensors: list[Tensor] = []  # of the states of the parameters
        self._arrays: list[Array] = []  # theirs: parts of the flat ones
        self._entries: list[Any] = []  # of all states, as the last step left them
        for name, entry in list(items[0].state.items()):
            self._state[name] = entry
            if isinstance(entry, Tensor):
                self._share(name, np.concatenate([item.state[name]._array.reshape(-1) for item in items]), items)
        self._entries = _entries(items)

    def _cut(self, flat: Array) -> list[Array]:
        return [flat[part].reshape(shape) for part, shape in zip(self._parts, self._shapes)]

    def _share(self, name: str, flat: Array, items: Sequence[Item]) -> None:
        """Let the tensors of a name be parts of a flat array."""
        self._state[name] = Tensor(flat)
        for own, item in zip(self._cut(flat), items):
            tensor = item.state.get(name)
            if tensor is None:
                tensor = item.state[name] = Tensor(own)
            tensor._array = own
            self._tensors.append(tensor)
            self._arrays.append(own)

    def fits(self, items: Sequence[Item]) -> bool:
        """Return whether these are its parameters, with their states as it left them."""
        entries = _entries(items)
        return (
            len(entries) == len(self._entries)
            and items[0].array.dtype == self._value.dtype
            and [item.array.shape for item in items] == self._shapes
            and all(map(is_, entries, self._entries))
            and all(map(is_, [tensor._array for tensor in self._tensors], self._arrays))
        )

    def step(self, items: Sequence[Item], update: Callable[..., Any], group: dict[str, Any]) -> None:
        """Step all of them.

        Args:
            items: its parameters.
            update: the optimizer's.
            group: its options.
        """
        np.concatenate([item.array.reshape(-1) for item in items], out=self._value)
        np.concatenate([item.grad.reshape(-1) for item in items], out=self._grad)
        update(self._value, self._grad, self._state, group)
        for name, entry in list(self._state.items()):
            if isinstance(entry, Tensor) and name not in items[0].state:
                self._share(name, entry._array, items)
        numbers = {name: entry for name, entry in self._state.items() if not isinstance(entry, Tensor)}
        for item, value in zip(items, self._values):
            item.array[...] = value
            item.state.update(numbers)
        self._entries = _entries(items)

    def release(self) -> None:
        """Give the tensors of the states memory of their own, except where others look at it."""
        self._state.clear()
        while self._tensors:
            tensor, own = self._tensors.pop(), self._arrays.pop()
            if tensor._array is own and sys.getrefcount(own) == 3:  # the tensor's, the name, and the argument
                tensor._array = own.copy()


def _entries(items: Sequence[Item]) -> list[Any]:
    return [entry for item in items for entry in item.state.values()]


def _small(items: Sequence[Item]) -> list[Item]:
    """Return those that may be copied: small, of one dtype, in memory that no other of them has."""
    if not items:
        return []
    dtype = items[0].array.dtype
    found = [
        item
        for item in items
        if item.array.size <= _SMALL and item.array.base is None and item.array.dtype is item.grad.dtype is dtype
    ]
    return found if len({id(item.array) for item in found}) == len(found) else []


def _alike(items: Sequence[Item]) -> bool:
    """Return whether the states have the same numbers, and tensors of the parameters' shapes that only they see."""
    first = items[0].state
    return all(item.state.keys() == first.keys() for item in items) and all(
        _entry_alike(item.state[name], first[name], item.array) for item in items for name in first
    )


def _entry_alike(entry: Any, first: Any, array: Array) -> bool:
    if not isinstance(entry, Tensor):
        return type(entry) is type(first) and isinstance(entry, (int, float)) and entry == first
    own = entry._array
    same = isinstance(first, Tensor) and own.shape == array.shape and own.dtype == array.dtype
    # Memory that is seen from elsewhere stays where it is: the references are the tensor's, the name, and the argument.
    return same and own.base is None and sys.getrefcount(own) <= 3
