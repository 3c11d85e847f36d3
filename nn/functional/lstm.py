"""A layer of an LSTM over all steps, as one operation; and one step of it, made of ordinary ones.

Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000. PyTorch's order of gates: input, forget, cell,
output.

The three sigmoids and the tanh of a step are one tanh: ``sigmoid(x)`` is ``tanh(x / 2) / 2 + 1 / 2``, so the weights are halved
where a sigmoid follows, and the gates are put in an order in which the sigmoids lie together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import chunk, linear, sigmoid, tanh
from ...core.extend import Array, Tensor, fused, operation, records
from .recurrence import (
    Steps,
    Weights,
    add_step,
    bias_gradient,
    continuing,
    forward_planes,
    gradient_of,
    of_outputs,
    planes,
    replayed,
    times_inputs,
    weight_gradient,
)


def lstm_step(
    x: Tensor, h: Tensor, c: Tensor, weights: Weights, project: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the next h, shape (N, H), and c, shape (N, C), of one step.

    Args:
        x: input, shape (N, I).
        h, c: states, shapes (N, H) and (N, C).
        weights: parameters of the layer.
        project: matrix (H, C) that h is multiplied by; ``None`` if H is C.
    """
    gates = linear(x, weights.ih, weights.bias_ih) + linear(h, weights.hh, weights.bias_hh)
    into, forget, cell, out = chunk(gates, 4, -1)
    c = sigmoid(forget) * c + sigmoid(into) * tanh(cell)
    h = sigmoid(out) * tanh(c)
    return (h if project is None else linear(h, project)), c


@operation
def lstm_layer(
    x: Tensor, h: Tensor, c: Tensor, weights: Weights, steps: Steps, project: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the outputs of all steps, shape (T, N, H), and the last h and c of each sequence.

    Args:
        x: inputs, shape (T, N, I).
        h, c: first states, shapes (N, H) and (N, C).
        weights: parameters of the layer.
        steps: the steps of each sequence.
        project: matrix (H, C) that h is multiplied by; ``None`` if H is C.
    """

    def replay(x: Tensor, h: Tensor, c: Tensor, *parts: Any) -> tuple[Tensor, Tensor, Tensor]:
        weights, project = Weights(*parts[:4]), parts[4] if len(parts) > 4 else None
        y, (last_h, last_c) = replayed(x, (h, c), steps, lambda x, h, c: lstm_step(x, h, c, weights, project))
        return y, last_h, last_c

    inputs = (x, h, c, *weights, *(() if project is None else (project,)))
    if project is not None:
        return replay(*inputs)
    layer = _Layer(x._array, h._array, c._array, weights, steps)
    outputs = layer.forward()
    if not records(*(tensor for tensor in inputs if tensor is not None)):
        return Tensor(outputs[0]), Tensor(outputs[1]), Tensor(outputs[2])
    y, last_h, last_c = fused("Lstm", inputs, outputs, layer.backward, replay)
    return y, last_h, last_c


# The gates as they are computed, by their numbers in PyTorch's order: cell, forget, output, input. In this order the sigmoids
# lie together, and so do the gates that one call of the backward pass needs.
_GATES = (2, 1, 3, 0)
_HALVES = np.array([1.0, 0.5, 0.5, 0.5]).reshape(4, 1, 1)


class _Layer:
    """Forward and backward pass over arrays.

    Attributes:
        values: of each step, tanh(c) and the gates, shape (T, 5, N, H).
        products: of each step, of a gate with the other factor, shape (T, 3, N, H): forget * c, h, and input * cell.
    """

    def __init__(self, x: Array, h: Array, c: Array, weights: Weights, steps: Steps) -> None:
        self.x, self.h, self.c, self.steps = x, h, c, steps
        self.w_ih, self.w_hh = weights.ih._array, weights.hh._array
        self.bias = None
        if weights.bias_ih is not None and weights.bias_hh is not None:
            self.bias = weights.bias_ih._array + weights.bias_hh._array

    def forward(self) -> tuple[Array, Array, Array]:
        """Return the outputs of all steps, and the last states."""
        bias = None if self.bias is None else _planes(self.bias[:, None]).swapaxes(1, 2)
        w_hh, room = forward_planes(_planes(self.w_hh)), np.empty((4, *self.h.shape), self.x.dtype, like=self.x)
        shape = (len(self.x), 5, *self.h.shape)
        self.values = np.empty(shape, self.x.dtype, like=self.x)
        times_inputs(self.x, forward_planes(_planes(self.w_ih)), bias, self.values[:, 1:])
        self.products = self.steps.empty((len(self.x), 3, *self.h.shape), self.x)
        h, last_c = self.h[:0], self.c.copy()
        for step, n in self.steps:
            h, c = continuing(h, n, self.h), last_c[:n]
            tanh_c, cell, forget, out, into = self.values[step, :, :n]
            kept, entered = self.products[step, 0, :n], self.products[step, 2, :n]
            gates, opened = self.values[step, 1:, :n], self.values[step, 2:, :n]
            gates += np.matmul(h, w_hh, out=room[:, :n])
            np.tanh(gates, out=gates)
            opened *= 0.5
            opened += 0.5
            np.add(np.multiply(forget, c, out=kept), np.multiply(into, cell, out=entered), out=c)
            h = np.multiply(out, np.tanh(c, out=tanh_c), out=self.products[step, 1, :n])
        self.y = self.products[:, 1].copy()
        return self.y, self.steps.last(self.y, self.h), last_c

    def backward(self, grads: Sequence[Array | None], wanted: Sequence[bool]) -> list[Array | None]:
        """Return the gradients of x, h, c and the weights."""
        dh, dc = (gradient_of(grad, self.h) for grad in grads[1:])
        of_y = of_outputs(grads[0])
        # The gradients of the gates of all steps in PyTorch's order, as rows for products with the weights.
        # One product with them sums over the gates.
        rows = self.steps.empty((len(self.x), len(dh), len(self.w_hh)), self.x)
        room = np.empty((9, *dh.shape), self.x.dtype, like=self.x)
        for step, n in self.steps.back():
            dh_n, dc_n, changes = dh[:n], dc[:n], room[5:, :n]
            add_step(dh_n, of_y, step)
            forget, out, into, by_c, cell = self._slopes(step, n, room[:5, :n])
            dc_n += np.multiply(by_c, dh_n, out=changes[0])
            np.multiply(into, dc_n, out=changes[0])
            np.multiply(forget, dc_n, out=changes[1])
            np.multiply(cell, dc_n, out=changes[2])
            np.multiply(out, dh_n, out=changes[3])
            row = rows[step, :n]
            row.reshape(n, 4, dh.shape[1])[...] = changes.swapaxes(0, 1)
            np.matmul(row, self.w_hh, out=dh_n)
            dc_n *= self.values[step, 2, :n]
        rows = rows.reshape(len(self.x) * len(dh), len(self.w_hh))
        return [(rows @ self.w_ih).reshape(self.x.shape) if wanted[0] else None, dh, dc, *self._of_weights(rows)]

    def _slopes(self, step: int, n: int, room: Array) -> Array:
        """Return the derivatives of a step's c by the forget gate, h by output, c by input, h by c, and c by the cell gate.

        The gates are meant before their functions. The slope of a sigmoid s is s - s * s, that of a tanh t is 1 - t * t; each
        times the other factor.

        Args:
            step: the step.
            n: the number of its sequences.
            room: for the result, (5, n, H).
        """
        values, products = self.values[step, :, :n], self.products[step, :, :n]
        np.multiply(values[2:], products, out=room[:3])
        np.subtract(products, room[:3], out=room[:3])
        np.multiply(values[:2], products[1:], out=room[3:])
        np.subtract(values[3:], room[3:], out=room[3:])
        return room

    def _of_weights(self, rows: Array) -> list[Array | None]:
        former_h = self.steps.former(self.y, self.h)
        bias = None if self.bias is None else bias_gradient(rows)
        return [weight_gradient(rows, self.x), weight_gradient(rows, former_h), bias, bias]


def _planes(matrix: Array) -> Array:
    """Return the gates of a weight matrix, halved where a sigmoid follows: (4, H, I)."""
    return planes(matrix, _GATES) * _HALVES.astype(matrix.dtype)
