"""Checks of attention: masks of all kinds, shared heads, and queries that may attend to no key."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...core import Tensor, tensor
from ...nn import functional as F
from ...testing.ops import Make, OpCheck


def _plain(make: Make) -> list[tuple[Tensor, ...]]:
    shapes = [
        ((3, 2), (4, 2), (4, 3)),
        ((2, 1, 3, 2), (2, 3, 4, 2), (1, 3, 4, 1)),
        ((2, 0, 2), (2, 3, 2), (2, 3, 2)),
        ((2, 3, 2), (2, 0, 2), (2, 0, 2)),
    ]
    return [tuple(make(*shape, signs=True) for shape in each) for each in shapes]


def _masked(make: Make) -> list[tuple[Tensor, ...]]:
    inputs = (make(2, 3, 2, signs=True), make(2, 4, 2, signs=True), make(2, 4, 3, signs=True))
    return [(*inputs, make(*shape, signs=True)) for shape in ((3, 4), (2, 1, 4), (2, 2, 3, 4))]


def _hidden(make: Make) -> list[tuple[Tensor, ...]]:
    mask = tensor([[True, False, True, True], [False, False, False, False], [True, True, True, True]])
    return [(make(2, 3, 2, signs=True), make(2, 4, 2, signs=True), make(2, 4, 3, signs=True), mask)]


def _grouped(make: Make) -> list[tuple[Tensor, ...]]:
    return [(make(1, 4, 3, 2, signs=True), make(1, 2, 3, 2, signs=True), make(1, 2, 3, 2, signs=True))]


def _attention(**options: Any) -> Any:
    return partial(F.scaled_dot_product_attention, **options)


CHECKS = [
    OpCheck("scaled_dot_product_attention", _attention(), _plain),
    OpCheck("scaled_dot_product_attention:causal", _attention(is_causal=True, scale=0.4), _plain),
    OpCheck("scaled_dot_product_attention:mask", _attention(), _masked),
    OpCheck("scaled_dot_product_attention:hidden", _attention(), _hidden),
    OpCheck("scaled_dot_product_attention:gqa", _attention(enable_gqa=True), _grouped),
]

EXEMPT = dict.fromkeys(
    ("attention", "additive_mask"), "called by scaled_dot_product_attention, which is checked, also with masks"
)
