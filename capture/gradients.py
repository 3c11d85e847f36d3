"""``Gradients``: the ``.grad`` of tensors from outside that a recorded call reads, and calls on them in replays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.extend import BorrowedGradient, Tensor
from .limits import LIMITS

_UNUSUAL = "unusual"  # kind of a gradient that no recording reads: a sparse one, or one with a graph


class Gradients:
    """Gradients that a recorded call reads or assigns.

    A replay makes the same calls, so it finds a gradient where the recorded call has found one, if that was so before the
    call. The plan is used only then.

    Attributes:
        held: tensors that are gradients; recorded calls may change them in place.
    """

    def __init__(self) -> None:
        self.held: list[Tensor] = []
        self._before: dict[int, tuple[Tensor, Any]] = {}  # by the ids of leaves
        self._read: set[int] = set()
        self._cleared: set[int] = set()
        self._kept: set[int] = set()  # those whose gradient before the call may have been changed in place

    def touch(self, *leaves: Tensor) -> None:
        """Note how the gradients of leaves were before the call, before they are changed for the first time."""
        for leaf in self._note(leaves):
            self._kept.add(id(leaf))

    def _note(self, leaves: Sequence[Tensor]) -> list[Tensor]:
        """Note how gradients were before the call, and return the leaves for which this is new."""
        found = [leaf for leaf in leaves if id(leaf) not in self._before]
        for leaf in found:
            self._before[id(leaf)] = leaf, kind_of_gradient(leaf)
        return found

    def read(self, leaf: Tensor) -> None:
        """Note that the gradient of a leaf is about to be read."""
        self.touch(leaf)
        self._read.add(id(leaf))

    def clear(self, *leaves: Tensor) -> None:
        """Note that the gradients of leaves are removed."""
        self._note(leaves)
        self._cleared.update(map(id, leaves))

    def assign(self, leaf: Tensor) -> None:
        """Note that a leaf is assigned a gradient."""
        self._note([leaf])
        self._cleared.discard(id(leaf))

    def arrive(self, leaf: Tensor) -> bool:
        """Note that a gradient arrives at a leaf; return whether it finds none there, in each replay.

        Large leaves without a gradient before the call are noted as read: the plan is used only where that is so.
        """
        first = leaf._grad is None and id(leaf) not in self._before and leaf._array.nbytes >= LIMITS.large
        self.touch(leaf)
        if first:
            self._read.add(id(leaf))
        elif id(leaf) in self._cleared:
            self._cleared.discard(id(leaf))
            first = True
        return first

    def hold(self, gradient: Tensor) -> None:
        """Note a tensor that is a gradient."""
        if all(each is not gradient for each in self.held):
            self.held.append(gradient)

    def replaced(self) -> dict[int, bool] | None:
        """Return by the ids of leaves whether their gradients are put in the places of none, not of others.

        ``None`` if the call may change a gradient in place that was there before.
        """
        if any(kind is not None and number in self._kept for number, (_, kind) in self._before.items()):
            return None
        return {number: number in self._kept for number in self._before}

    def before(self) -> list[tuple[Tensor, Any]]:
        """Return the leaves whose gradients are read, and of what kind these were before the call."""
        return [found for number, found in self._before.items() if number in self._read]


def kind_of_gradient(leaf: Tensor) -> Any:
    """Return what must be the same for a plan that reads the gradient: is there one, and its layout when it is read."""
    return kind_of(leaf._grad)


def kind_of(gradient: Any) -> Any:
    """Return the same for what a leaf has as its gradient."""
    if gradient is None:
        return None
    if isinstance(gradient, BorrowedGradient):  # becomes an array in order when it is read
        return gradient._array.dtype, np.empty(gradient._array.shape, np.bool_).strides
    if gradient.is_sparse or gradient._requires_grad:
        return _UNUSUAL
    array = gradient._array
    return array.dtype, tuple([step // array.itemsize for step in array.strides])


def read_gradient(leaf: Tensor) -> Tensor | None:
    """Return the gradient of a tensor."""
    return leaf.grad


def assign_gradient(leaf: Tensor, gradient: Tensor) -> None:
    """Make a tensor the gradient of another."""
    leaf.grad = gradient


def clear_gradient(leaf: Tensor) -> None:
    """Remove the gradient of a tensor."""
    leaf.grad = None
