"""A layer of a plain recurrent network (Elman 1990) over all steps, as one operation; and one step of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import linear, relu, tanh
from ...core.extend import Array, Tensor, fused, operation, records
from .recurrence import Steps, Weights, add_step, bias_gradient, gradient_of, of_outputs, replayed, weight_gradient

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": tanh, "relu": relu}


def rnn_step(x: Tensor, h: Tensor, weights: Weights, nonlinearity: str) -> Tensor:
    """Return the next h of one step, shape (N, H).

    Args:
        x: input, shape (N, I).
        h: state, shape (N, H).
        weights: parameters of the layer.
        nonlinearity: "tanh" or "relu".
    """
    total = linear(x, weights.ih, weights.bias_ih) + linear(h, weights.hh, weights.bias_hh)
    return ACTIVATIONS[nonlinearity](total)


@operation
def rnn_layer(x: Tensor, h: Tensor, weights: Weights, steps: Steps, nonlinearity: str) -> tuple[Tensor, Tensor]:
    """Return the outputs of all steps, shape (T, N, H), and the last h of each sequence, shape (N, H).

    Args:
        x: inputs, shape (T, N, I).
        h: first state, shape (N, H).
        weights: parameters of the layer.
        steps: the steps of each sequence.
        nonlinearity: "tanh" or "relu".
    """

    def replay(x: Tensor, h: Tensor, *parts: Any) -> tuple[Tensor, Tensor]:
        y, (last,) = replayed(x, (h,), steps, lambda x, h: (rnn_step(x, h, Weights(*parts), nonlinearity),))
        return y, last

    layer = _Layer(x._array, h._array, weights, steps, nonlinearity)
    outputs = layer.forward()
    inputs = (x, h, *weights)
    if not records(*(tensor for tensor in inputs if tensor is not None)):
        return Tensor(outputs[0]), Tensor(outputs[1])
    y, last = fused("Rnn", inputs, outputs, layer.backward, replay)
    return y, last


class _Layer:
    """Forward and backward pass over arrays, with the values of the forward pass that the backward one needs."""

    def __init__(self, x: Array, h: Array, weights: Weights, steps: Steps, nonlinearity: str) -> None:
        self.x, self.h, self.steps = x, h, steps
        self.w_ih, self.w_hh = weights.ih._array, weights.hh._array
        self.bias = None
        if weights.bias_ih is not None and weights.bias_hh is not None:
            self.bias = weights.bias_ih._array + weights.bias_hh._array
        self.tanh = nonlinearity == "tanh"

    def forward(self) -> tuple[Array, Array]:
        """Return the outputs of all steps, and the last states."""
        totals = self.x.reshape(math.prod(self.x.shape[:2]), self.x.shape[-1]) @ self.w_ih.T
        if self.bias is not None:
            totals += self.bias
        totals = totals.reshape(*self.x.shape[:2], len(self.w_hh))
        self.former_h, self.y = (self.steps.empty(totals.shape, self.x) for _ in range(2))
        h, w_hh = self.h.copy(), np.ascontiguousarray(self.w_hh.T, like=self.w_hh)
        for step, n in self.steps:
            self.former_h[step] = h
            total, h_n = totals[step, :n], h[:n]
            total += h_n @ w_hh
            if self.tanh:
                np.tanh(total, out=h_n)
            else:
                np.maximum(total, 0, out=h_n)
            self.y[step, :n] = h_n
        return self.y, h

    def backward(self, grads: Sequence[Array | None], wanted: Sequence[bool]) -> list[Array | None]:
        """Return the gradients of x, h and the weights."""
        dh = gradient_of(grads[1], self.h)
        changes = self.steps.empty(self.y.shape, self.x)
        of_y = of_outputs(grads[0])
        for step, n in self.steps.back():
            dh_n, y = dh[:n], self.y[step, :n]
            add_step(dh_n, of_y, step)
            np.multiply(dh_n, 1 - y * y if self.tanh else y > 0, out=changes[step, :n])
            np.matmul(changes[step, :n], self.w_hh, out=dh_n)
        rows = changes.reshape(math.prod(changes.shape[:2]), changes.shape[-1])
        of_x = (rows @ self.w_ih).reshape(self.x.shape) if wanted[0] else None
        bias = None if self.bias is None else bias_gradient(rows)
        return [of_x, dh, weight_gradient(rows, self.x), weight_gradient(rows, self.former_h), bias, bias]
