"""What recurrent layers share: the loop over steps of sequences of unlike lengths, and the sums over all steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...core.extend import Array, Tensor


class Steps:
    """The steps of sequences that are padded to one length and sorted by length, the longest first.

    At step ``t`` the first ``counts[t]`` of them go on. Backwards, the shorter ones join later.
    """

    def __init__(self, counts: Sequence[int], reverse: bool) -> None:
        self.counts = counts
        self.order = range(len(counts) - 1, -1, -1) if reverse else range(len(counts))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Each step and how many sequences go on, in the order of the forward pass."""
        return ((step, self.counts[step]) for step in self.order)

    def back(self) -> Iterator[tuple[int, int]]:
        """The same in the order of the backward pass."""
        return ((step, self.counts[step]) for step in reversed(self.order))

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """An array of all steps, to be written; what steps leave out, because sequences have ended, is zero."""
        return np.empty(shape, dtype) if min(self.counts, default=0) == shape[-2] else np.zeros(shape, dtype)


class Weights(NamedTuple):
    """The parameters of one direction of one layer; ``None`` without biases."""

    ih: Tensor
    hh: Tensor
    bias_ih: Tensor | None = None
    bias_hh: Tensor | None = None


def planes(matrix: Array, order: Sequence[int]) -> Array:
    """The gates of a weight matrix (gates * H, I), in that order: (gates, H, I).

    Each gate is a plane of its own: so all arithmetic on one gate goes over memory that lies together.
    """
    return matrix.reshape(len(order), -1, matrix.shape[-1])[list(order)]


def from_planes(grad: Array, order: Sequence[int]) -> Array:
    """The gradient of the matrix, from that of its gates in that order."""
    result = np.empty_like(grad)
    result[list(order)] = grad
    return result.reshape(-1, grad.shape[-1])


def forward_planes(gates: Array) -> Array:
    """Gates as matrices to multiply with: (gates, I, H). A copy, because products with transposed ones are slower."""
    return np.ascontiguousarray(gates.swapaxes(1, 2))


def times_inputs(x: Array, weights: Array) -> Array:
    """The products of the inputs of all steps with each gate's weights: (T, N, I) and (gates, I, H) give (gates, T, N, H)."""
    return np.matmul(x.reshape(-1, x.shape[-1]), weights).reshape(len(weights), *x.shape[:-1], -1)  # type: ignore[no-any-return]


def rows_of(changes: Array) -> Array:
    """From planes (gates, T, N, H) to rows (T * N, gates * H), for products over all steps."""
    return changes.transpose(1, 2, 0, 3).reshape(changes[0, ..., 0].size, -1)  # type: ignore[no-any-return]


def over_steps(rows: Array, values: Array, order: Sequence[int]) -> Array:
    """The gradient of weights (gates * H, I) that were multiplied with ``values`` (T, N, I) in each step."""
    product = rows.T @ values.reshape(-1, values.shape[-1])
    return from_planes(product.reshape(len(order), -1, product.shape[-1]), order)


def of_bias(rows: Array, order: Sequence[int]) -> Array:
    """The gradient of a bias (gates * H,) that was added in each step."""
    return from_planes(rows.sum(0).reshape(len(order), -1, 1), order).reshape(-1)


def through(changes: Array, gates: Array) -> Array:
    """The gradient of what was multiplied with the gates (gates, H, I): from (gates, T, N, H) to (T, N, I)."""
    flat = changes.reshape(len(changes), -1, changes.shape[-1])
    return np.matmul(flat, gates).sum(0).reshape(*changes.shape[1:-1], -1)  # type: ignore[no-any-return]


def gradient_of(grad: Array | None, state: Array) -> Array:
    """A gradient of ``state`` to add to: a copy of ``grad``, or zeros."""
    return np.zeros_like(state) if grad is None else np.array(grad, state.dtype)
