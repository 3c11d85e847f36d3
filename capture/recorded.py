"""``Recorded`` and ``Input``: a program as it was recorded, and the tensors that it is called with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.extend import Tensor
from .values import Backward, Outer, Statement


class Input(NamedTuple):
    """A tensor among the arguments of a plan.

    Attributes:
        shape, dtype, strides: of its array.
        requires_grad: whether gradients were recorded for it.
    """

    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...]
    requires_grad: bool

    @staticmethod
    def of(tensor: Tensor) -> Input:
        """Return the description of a tensor."""
        array = tensor._array
        return Input(tuple(array.shape), array.dtype, tuple(array.strides), tensor._requires_grad)


class Recorded(NamedTuple):
    """Parts of a recorded program, before its chains are fused and its memory is planned.

    Attributes:
        statements: the program.
        half: the first statement of its backward half.
        arrays: by the number of a value, the tensor whose array it is.
        results: structure of results.
        backwards: the backward passes.
        gradients: for each of them, the gradients in the order of the plan's inputs.
    """

    statements: Sequence[Statement]
    half: int
    arrays: dict[int, Outer]
    results: Any
    backwards: Sequence[Backward]
    gradients: Sequence[Sequence[Any]]
