"""Checks of recurrent layers over all steps: with and without biases, reversed, and for sequences of unequal lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import Tensor
from ...nn.functional.elman import rnn_layer
from ...nn.functional.gru import gru_layer
from ...nn.functional.lstm import lstm_layer
from ...nn.functional.recurrence import Steps, Weights
from ...testing.ops import Make, OpCheck, Samples

INPUT, HIDDEN = 3, 2
COUNTS, EVEN = (2, 2, 1), (2, 2)  # number of sequences that have an element at each step


def _layer(
    layer: Callable[..., Any], states: int, steps: Steps, options: tuple[Any, ...]
) -> Callable[..., tuple[Tensor, ...]]:
    def run(x: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        return layer(x, *others[:states], Weights(*others[states:]), steps, *options)

    return run


def _samples(counts: Sequence[int], gates: int, states: int, biases: int) -> Samples:
    def samples(make: Make) -> list[tuple[Tensor, ...]]:
        size, first = gates * HIDDEN, counts[0]
        shapes = [(len(counts), first, INPUT), *[(first, HIDDEN)] * states, (size, INPUT), (size, HIDDEN)]
        return [tuple(make(*shape, low=0.1, high=0.9, signs=True) for shape in (*shapes, *[(size,)] * biases))]

    return samples


def _checks(name: str, layer: Callable[..., Any], gates: int, states: int, *options: Any) -> list[OpCheck]:
    kinds = {"": (EVEN, False, 2), "unlike": (COUNTS, False, 2), "reverse": (COUNTS, True, 0)}
    return [
        OpCheck(
            ":".join(filter(None, (name, kind))),
            _layer(layer, states, Steps(counts, reverse), options),
            _samples(counts, gates, states, biases),
        )
        for kind, (counts, reverse, biases) in kinds.items()
    ]


CHECKS = [
    *_checks("rnn_layer", rnn_layer, 1, 1, "tanh"),
    *_checks("rnn_layer:relu", rnn_layer, 1, 1, "relu"),
    *_checks("gru_layer", gru_layer, 3, 1),
    *_checks("lstm_layer", lstm_layer, 4, 2),
]
