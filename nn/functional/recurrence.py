"""Parts that recurrent layers share: the loop over steps of sequences of different lengths, and the sums over all steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...core import cat, stack, zeros_like
from ...core.extend import Array, Tensor

WHOLE = 2048  # rows of a product that is not divided
BLOCK = 256  # rows
BLOCKS = 32  # at most

States = tuple[Tensor, ...]


class Steps:
    """Steps of sequences that are padded to one length and sorted by length, the longest first.

    At step t the first ``counts[t]`` sequences continue. Backwards, the shorter ones join later.
    """

    def __init__(self, counts: Sequence[int], reverse: bool) -> None:
        self.counts = counts
        self.reverse = reverse
        self.order = range(len(counts) - 1, -1, -1) if reverse else range(len(counts))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Return each step and the number of sequences that continue, in the order of the forward pass."""
        return ((step, self.counts[step]) for step in self.order)

    def back(self) -> Iterator[tuple[int, int]]:
        """Return the same in the order of the backward pass."""
        return ((step, self.counts[step]) for step in reversed(self.order))

    def empty(self, shape: tuple[int, ...], like: Array) -> Array:
        """Return an array of all steps to write into, with zeros for sequences that have ended, of the dtype of ``like``."""
        whole = min(self.counts, default=0) == shape[-2]
        return np.empty(shape, like.dtype, like=like) if whole else np.zeros(shape, like.dtype, like=like)

    def former(self, states: Array, first: Array) -> Array:
        """Return the state before each step, (T, N, H), from those after each and the first ones, (N, H)."""
        result = np.empty_like(states)
        if not self.reverse:
            result[1:], result[:1] = states[:-1], first
            return result
        result[:-1], result[-1:] = states[1:], first
        for step, (here, later) in enumerate(zip(self.counts, self.counts[1:])):
            result[step, later:here] = first[later:here]
        return result

    def last(self, states: Array, first: Array) -> Array:
        """Return the state of each sequence after its last step, (N, H)."""
        result = first.copy()
        if self.reverse:
            result[:] = states[0]
            return result
        for step, (here, later) in enumerate(zip(self.counts, (*self.counts[1:], 0))):
            if later < here:
                result[later:here] = states[step, later:here]
        return result


def continuing(state: Array, count: int, first: Array) -> Array:
    """Return the states of the sequences that continue; some may have ended, or join now.

    Args:
        state: states of the sequences before, shape (n, H).
        count: number of sequences that continue.
        first: first states of all sequences, for those that join.
    """
    return state[:count] if count <= len(state) else np.concatenate([state, first[len(state) : count]])


class Weights(NamedTuple):
    """Parameters of one direction of one layer; ``None`` without biases."""

    ih: Tensor
    hh: Tensor
    bias_ih: Tensor | None = None
    bias_hh: Tensor | None = None


def replayed(x: Tensor, states: States, steps: Steps, one: Callable[..., States]) -> tuple[Tensor, States]:
    """Return the outputs of all steps, shape (T, N, H), and the last states, computed by ordinary operations.

    Args:
        x: inputs, shape (T, N, I).
        states: first states, each of shape (N, H).
        steps: the steps of each sequence.
        one: ``one(x, *states)`` returns the states after one step; the first of them is the output.
    """
    outputs: dict[int, Tensor] = {}
    for step, count in steps:
        new = one(x[step, :count], *(state[:count] for state in states))
        outputs[step] = cat([new[0], zeros_like(states[0][count:])])
        states = tuple(cat([now, state[count:]]) for now, state in zip(new, states))
    return stack([outputs[step] for step in range(len(outputs))]), states


def planes(matrix: Array, order: Sequence[int]) -> Array:
    """Return the gates of a weight matrix (gates * H, I) in ``order``: (gates, H, I).

    Each gate is a plane of its own: so all arithmetic on one gate goes over memory that lies together.
    """
    return matrix.reshape(len(order), -1, matrix.shape[-1])[list(order)]


def from_planes(grad: Array, order: Sequence[int]) -> Array:
    """Return the gradient of the matrix from that of its gates in ``order``."""
    result = np.empty_like(grad)
    result[list(order)] = grad
    return result.reshape(-1, grad.shape[-1])


def forward_planes(gates: Array) -> Array:
    """Return the gates as matrices to multiply with, (gates, I, H): a copy, as products with transposed ones are slower."""
    return np.ascontiguousarray(gates.swapaxes(1, 2), like=gates)


def times_inputs(x: Array, weights: Array, bias: Array | None, out: Array | None = None) -> Array:
    """Return the products of the inputs of all steps with each gate's weights, shape (T, gates, N, H).

    The gates of a step lie together: memory that is far apart takes four times as long to go over.

    Args:
        x: inputs, shape (T, N, I).
        weights: shape (gates, I, H).
        bias: shape (gates, 1, H), or ``None``.
        out: array for the result; ``None`` for a new one.
    """
    gates = np.matmul(x[:, None], weights, out=out)
    if bias is not None:
        rows = np.empty(gates.shape[1:], gates.dtype, like=gates)
        rows[...] = bias
        gates += rows  # over memory that lies together: a row for all sequences takes three times as long
    return gates


def as_rows(changes: Array) -> Array:
    """Return (T, gates, N, H) as rows (T * N, gates * H), for products over all steps."""
    steps, gates, sequences, features = changes.shape
    return changes.swapaxes(1, 2).reshape(steps * sequences, gates * features)


def weight_gradient(rows: Array, values: Array, order: Sequence[int] | None = None) -> Array:
    """Return the gradient of weights (gates * H, I) that were multiplied with ``values`` in each step.

    Args:
        rows: gradients of the products of all steps, shape (T * N, gates * H).
        values: shape (T, N, I).
        order: the gates' order in ``rows``; ``None`` if it is that of the weights.
    """
    product = _long_product(rows, values.reshape(-1, values.shape[-1]))
    return product if order is None else from_planes(product.reshape(len(order), -1, product.shape[-1]), order)


def _long_product(rows: Array, values: Array) -> Array:
    """Return ``rows.T @ values`` as a sum over blocks of rows.

    BLAS takes longer for some products of more rows, up to three times: its own blocks do not stay in the cache.
    """
    if len(rows) <= WHOLE:
        return rows.T @ values
    step = max(BLOCK, len(rows) // BLOCKS)
    total = rows[:step].T @ values[:step]
    room = np.empty_like(total)
    for start in range(step, len(rows), step):
        part = slice(start, start + step)
        total += np.matmul(rows[part].T, values[part], out=room)
    return total


def bias_gradient(rows: Array, order: Sequence[int] | None = None) -> Array:
    """Return the gradient of a bias (gates * H,) that was added in each step; see ``weight_gradient``."""
    total = np.ones(len(rows), rows.dtype) @ rows  # three times as fast as a sum over the first dimension
    return total if order is None else from_planes(total.reshape(len(order), -1, 1), order).reshape(-1)


def input_gradient(rows: Array, gates: Array, shape: tuple[int, ...]) -> Array:
    """Return the gradient of inputs that were multiplied with the gates in each step.

    Args:
        rows: gradients of the products of all steps, shape (T * N, gates * H).
        gates: shape (gates, H, I).
        shape: of the inputs, (T, N, I).
    """
    return (rows @ gates.reshape(-1, gates.shape[-1])).reshape(shape)


def of_outputs(grad: Array | None) -> Array | None:
    """Return the gradient of all outputs for ``add_step``: as it is, or without dimensions if it is one number expanded.

    So is the gradient of a sum. NumPy adds one number to an array in half the time.
    """
    if grad is None or not grad.size or any(grad.strides):
        return grad
    return grad[(slice(1),) * grad.ndim].reshape(())


def add_step(dh: Array, grad: Array | None, step: int) -> None:
    """Add the gradient of the outputs of a step to ``dh``, shape (n, H), that of the state.

    Args:
        dh: changed in place.
        grad: what ``of_outputs`` returned; ``None`` for no gradient.
        step: the step.
    """
    if grad is not None:
        dh += grad[step, : len(dh)] if grad.ndim else grad


def gradient_of(grad: Array | None, state: Array) -> Array:
    """Return a gradient of ``state`` to add to: a copy of ``grad``, or zeros."""
    return np.zeros_like(state) if grad is None else grad.astype(state.dtype)
