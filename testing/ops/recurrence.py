"""Checks of recurrent layers over all steps: with and without biases, backwards, and of sequences of unlike lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import Tensor
from ...nn.functional.elman import rnn_layer
from ...nn.functional.gru import gru_layer
from ...nn.functional.lstm import lstm_layer
from ...nn.functional.recurrence import Steps, Weights
from .check import Make, OpCheck, Samples

INPUT, HIDDEN = 2, 3
COUNTS = (3, 3, 1)  # how many sequences go on at each step


def _layer(layer: Callable[..., Any], states: int, reverse: bool, *options: Any) -> Callable[..., tuple[Tensor, ...]]:
    def run(x: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        return layer(x, *others[:states], Weights(*others[states:]), Steps(COUNTS, reverse), *options)

    return run


def _samples(gates: int, states: int, biases: int) -> Samples:
    def samples(make: Make) -> list[tuple[Tensor, ...]]:
        size, first = gates * HIDDEN, COUNTS[0]
        shapes = [(len(COUNTS), first, INPUT), *[(first, HIDDEN)] * states, (size, INPUT), (size, HIDDEN)]
        return [tuple(make(*shape, low=0.1, high=0.9, signs=True) for shape in (*shapes, *[(size,)] * biases))]

    return samples


def _checks(layer: Callable[..., Any], gates: int, states: int, *options: Any) -> list[OpCheck]:
    name = layer.__name__
    return [
        OpCheck(name, _layer(layer, states, False, *options), _samples(gates, states, 2)),
        OpCheck(f"{name}:reverse", _layer(layer, states, True, *options), _samples(gates, states, 0)),
    ]


CHECKS = [
    *_checks(rnn_layer, 1, 1, "tanh"),
    *_checks(gru_layer, 3, 1),
    *_checks(lstm_layer, 4, 2),
]
