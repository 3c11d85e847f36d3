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
    as_rows,
    bias_gradient,
    continuing,
    forward_planes,
    gradient_of,
    input_gradient,
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


# The gates in the order in which they are computed, by their numbers in PyTorch's: output, forget, input, cell. So the
# sigmoids lie together, so do the three that c depends on, and the two that are factors of one another.
_ORDER = (3, 1, 0, 2)
_HALVES = np.array([0.5, 0.5, 0.5, 1.0]).reshape(4, 1, 1)


class _Layer:
    """Forward and backward pass over arrays, with the gates, (T, 4, N, H), and other values that the backward one needs."""

    def __init__(self, x: Array, h: Array, c: Array, weights: Weights, steps: Steps) -> None:
        self.x, self.h, self.c, self.steps = x, h, c, steps
        self.w_ih, self.w_hh = planes(weights.ih._array, _ORDER), planes(weights.hh._array, _ORDER)
        self.bias = None
        if weights.bias_ih is not None and weights.bias_hh is not None:
            self.bias = planes((weights.bias_ih._array + weights.bias_hh._array)[:, None], _ORDER).swapaxes(1, 2)

    def forward(self) -> tuple[Array, Array, Array]:
        """Return the outputs of all steps, and the last states."""
        shape, halves = (*self.x.shape[:2], self.h.shape[1]), _HALVES.astype(self.x.dtype)
        bias = None if self.bias is None else self.bias * halves
        self.gates = times_inputs(self.x, forward_planes(self.w_ih) * halves, bias)
        self.y, self.all_c, self.tanh_c = (self.steps.empty(shape, self.x) for _ in range(3))
        w_hh, room = forward_planes(self.w_hh) * halves, np.empty((5, *self.h.shape), self.x.dtype, like=self.x)
        h, c = self.h[:0], self.c[:0]
        for step, n in self.steps:
            h, c = continuing(h, n, self.h), continuing(c, n, self.c)
            products, kept = room[:4, :n], room[4, :n]
            gates, tanh_c = self.gates[step, :, :n], self.tanh_c[step, :n]
            gates += np.matmul(h, w_hh, out=products)
            np.tanh(gates, out=gates)
            opened = gates[:3]
            opened *= 0.5
            opened += 0.5
            out, forget, into, cell = gates
            c = np.multiply(forget, c, out=self.all_c[step, :n])
            c += np.multiply(into, cell, out=kept)
            h = np.multiply(out, np.tanh(c, out=tanh_c), out=self.y[step, :n])
        return self.y, self.steps.last(self.y, self.h), self.steps.last(self.all_c, self.c)

    def backward(self, grads: Sequence[Array | None], wanted: Sequence[bool]) -> list[Array | None]:
        """Return the gradients of x, h, c and the weights."""
        dh, dc = (gradient_of(grad, self.h) for grad in grads[1:])
        changes, by_c = self._slopes()
        of_y = of_outputs(grads[0])
        room = np.empty((5, *self.h.shape), self.x.dtype, like=self.x)
        for step, n in self.steps.back():
            dh_n, dc_n, change, products = dh[:n], dc[:n], changes[step, :, :n], room[:4, :n]
            add_step(dh_n, of_y, step)
            dc_n += np.multiply(by_c[step, :n], dh_n, out=room[4, :n])
            change[0] *= dh_n
            change[1:] *= dc_n
            if n < len(dh):
                changes[step, :, n:] = 0
            np.add.reduce(np.matmul(change, self.w_hh, out=products), 0, out=dh_n)
            dc_n *= self.gates[step, 1, :n]
        rows = as_rows(changes)
        return [input_gradient(rows, self.w_ih, self.x.shape) if wanted[0] else None, dh, dc, *self._of_weights(rows)]

    def _slopes(self) -> tuple[Array, Array]:
        """Return the derivatives of h and c of a step by its gates before their functions, for all steps at once.

        Returns:
            For the gates, shape (T, 4, N, H): of h by the output gate, of c by the others; and of h by c, (T, N, H).
        """
        gates = self.gates
        # The slope of a sigmoid s is s - s * s, that of a tanh t is 1 - t * t.
        slopes = np.multiply(gates, gates)
        np.subtract(gates[:, :3], slopes[:, :3], out=slopes[:, :3])
        np.subtract(1, slopes[:, 3], out=slopes[:, 3])
        slopes[:, 0] *= self.tanh_c
        slopes[:, 1] *= self.steps.former(self.all_c, self.c)
        slopes[:, 2:] *= gates[:, 3:1:-1]
        # By c, h = out * tanh(c) changes with out * (1 - tanh(c) ** 2), which is out - h * tanh(c).
        by_c = np.multiply(self.y, self.tanh_c)
        return slopes, np.subtract(gates[:, 0], by_c, out=by_c)

    def _of_weights(self, rows: Array) -> list[Array | None]:
        former_h = self.steps.former(self.y, self.h)
        bias = None if self.bias is None else bias_gradient(rows, _ORDER)
        return [weight_gradient(rows, self.x, _ORDER), weight_gradient(rows, former_h, _ORDER), bias, bias]
