"""A layer of gated recurrent units over all steps, as one operation; and one step of it, made of ordinary ones.

Cho et al. 2014, in the form whose reset gate opens after the product (as cuDNN's and PyTorch's). PyTorch's order of gates:
reset, update, new.
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

_ORDER = (0, 1, 2)
# Sigmoids are computed by tanh: sigmoid(x) = tanh(x / 2) / 2 + 1 / 2.
_HALVES = np.array([0.5, 0.5, 1.0]).reshape(3, 1, 1)


def gru_step(x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    """Return the next h of one step, shape (N, H).

    Args:
        x: input, shape (N, I).
        h: state, shape (N, H).
        weights: parameters of the layer.
    """
    reset_x, update_x, new_x = chunk(linear(x, weights.ih, weights.bias_ih), 3, -1)
    reset_h, update_h, new_h = chunk(linear(h, weights.hh, weights.bias_hh), 3, -1)
    update = sigmoid(update_x + update_h)
    new = tanh(new_x + sigmoid(reset_x + reset_h) * new_h)
    return new + update * (h - new)


@operation
def gru_layer(x: Tensor, h: Tensor, weights: Weights, steps: Steps) -> tuple[Tensor, Tensor]:
    """Return the outputs of all steps, shape (T, N, H), and the last h of each sequence, shape (N, H).

    Args:
        x: inputs, shape (T, N, I).
        h: first state, shape (N, H).
        weights: parameters of the layer.
        steps: the steps of each sequence.
    """

    def replay(x: Tensor, h: Tensor, *parts: Any) -> tuple[Tensor, Tensor]:
        y, (last,) = replayed(x, (h,), steps, lambda x, h: (gru_step(x, h, Weights(*parts)),))
        return y, last

    layer = _Layer(x._array, h._array, weights, steps)
    outputs = layer.forward()
    inputs = (x, h, *weights)
    if not records(*(tensor for tensor in inputs if tensor is not None)):
        return Tensor(outputs[0]), Tensor(outputs[1])
    y, last = fused("Gru", inputs, outputs, layer.backward, replay)
    return y, last


class _Layer:
    """Forward and backward pass over arrays, with the gates, (T, 3, N, H), and other values that the backward one needs."""

    def __init__(self, x: Array, h: Array, weights: Weights, steps: Steps) -> None:
        self.x, self.h, self.steps = x, h, steps
        self.w_ih, self.w_hh = planes(weights.ih._array, _ORDER), planes(weights.hh._array, _ORDER)
        self.b_ih, self.b_hh = (
            None if bias is None else planes(bias._array[:, None], _ORDER).swapaxes(1, 2)
            for bias in (weights.bias_ih, weights.bias_hh)
        )

    def forward(self) -> tuple[Array, Array]:
        """Return the outputs of all steps, and the last states."""
        shape, halves = (*self.x.shape[:2], self.h.shape[1]), _HALVES.astype(self.x.dtype)
        self.gates = times_inputs(self.x, forward_planes(self.w_ih) * halves, self._bias(halves))
        self.y, self.new_h = (self.steps.empty(shape, self.x) for _ in range(2))
        w_hh, room = forward_planes(self.w_hh) * halves, np.empty((3, *self.h.shape), self.x.dtype, like=self.x)
        h = self.h[:0]
        for step, n in self.steps:
            h = continuing(h, n, self.h)
            gates, new_h, products = self.gates[step, :, :n], self.new_h[step, :n], np.matmul(h, w_hh, out=room[:, :n])
            np.add(products[2], 0 if self.b_hh is None else self.b_hh[2], out=new_h)
            opened, new = gates[:2], gates[2]
            opened += products[:2]
            np.tanh(opened, out=opened)
            opened *= 0.5
            opened += 0.5
            new += np.multiply(opened[0], new_h, out=products[2])
            np.tanh(new, out=new)
            h = np.subtract(h, new, out=self.y[step, :n])
            h *= opened[1]
            h += new
        return self.y, self.steps.last(self.y, self.h)

    def _bias(self, halves: Array) -> Array | None:
        """Return the bias that is added to all steps at once: the sum of both, but for the new gate only that of the inputs."""
        if self.b_ih is None or self.b_hh is None:
            return None
        both = self.b_ih.copy()
        both[:2] += self.b_hh[:2]
        return both * halves

    def backward(self, grads: Sequence[Array | None], wanted: Sequence[bool]) -> list[Array | None]:
        """Return the gradients of x, h and the weights."""
        dh, former_h = gradient_of(grads[1], self.h), self.steps.former(self.y, self.h)
        of_h, of_x = (self.steps.empty(self.gates.shape, self.x) for _ in range(2))
        of_y = of_outputs(grads[0])
        for step, n in self.steps.back():
            dh_n, change, (reset, update, new) = dh[:n], of_h[step, :, :n], self.gates[step, :, :n]
            add_step(dh_n, of_y, step)
            of_new = dh_n * (1 - update) * (1 - new * new)
            np.multiply(of_new * self.new_h[step, :n], reset * (1 - reset), out=change[0])
            np.multiply(dh_n * (former_h[step, :n] - new), update * (1 - update), out=change[1])
            np.multiply(of_new, reset, out=change[2])
            of_x[step, :2, :n], of_x[step, 2, :n] = change[:2], of_new
            dh_n *= update
            dh_n += np.add.reduce(np.matmul(change, self.w_hh), 0)
        of_x, of_h = as_rows(of_x), as_rows(of_h)
        into = input_gradient(of_x, self.w_ih, self.x.shape) if wanted[0] else None
        return [into, dh, *self._of_weights(of_x, of_h, former_h)]

    def _of_weights(self, of_x: Array, of_h: Array, former_h: Array) -> list[Array | None]:
        matrices = [weight_gradient(of_x, self.x, _ORDER), weight_gradient(of_h, former_h, _ORDER)]
        if self.b_ih is None:
            return [*matrices, None, None]
        return [*matrices, bias_gradient(of_x, _ORDER), bias_gradient(of_h, _ORDER)]
