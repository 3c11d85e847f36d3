"""Checks of convolutions, and of ``im2col`` and ``col2im``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ... import core as tg
from ...testing.ops import Make, OpCheck, Samples


def _arguments(*shapes: tuple[tuple[int, ...], tuple[int, ...]], outputs: int | None = None) -> Samples:
    """Return samples (input, weight, bias) for pairs of shapes; the bias has length ``outputs`` or that of the weight."""

    def samples(make: Make) -> list[tuple[Any, ...]]:
        return [
            (make(*shape, signs=True), make(*weight, signs=True), make(outputs or weight[0]))
            for shape, weight in shapes
        ]

    return samples


def _check(name: str, function: Callable[..., Any], samples: Samples, **options: Any) -> OpCheck:
    return OpCheck(name, partial(function, **options), samples)


CHECKS = [
    _check("conv1d", tg.conv1d, _arguments(((2, 2, 5), (3, 2, 3)), ((2, 4), (1, 2, 1)), ((0, 2, 4), (1, 2, 2)))),
    _check("conv1d:options", tg.conv1d, _arguments(((2, 4, 7), (2, 2, 2))), stride=2, padding=2, dilation=2, groups=2),
    _check("conv1d:same", tg.conv1d, _arguments(((1, 1, 5), (1, 1, 4))), padding="same", dilation=2),
    _check("conv2d", tg.conv2d, _arguments(((2, 2, 4, 3), (2, 2, 2, 3)), ((1, 3, 3), (2, 1, 1, 1)))),
    _check("conv2d:options", tg.conv2d, _arguments(((1, 2, 4, 5), (2, 1, 2, 2))), stride=(2, 3), padding=1, groups=2),
    _check("conv2d:same", tg.conv2d, _arguments(((1, 1, 3, 4), (2, 1, 2, 3))), padding="same"),
    _check("conv2d:batch", tg.conv2d, _arguments(((9, 2, 1, 2), (2, 1, 3, 2))), padding=1, groups=2),
    _check("conv3d", tg.conv3d, _arguments(((1, 2, 2, 3, 2), (1, 2, 2, 2, 1)))),
    _check("conv3d:options", tg.conv3d, _arguments(((1, 1, 3, 3, 3), (1, 1, 2, 2, 2))), stride=2, padding=(1, 0, 1)),
    _check("conv_transpose1d", tg.conv_transpose1d, _arguments(((2, 2, 3), (2, 1, 2)), ((2, 3), (2, 1, 1)), outputs=1)),
    _check(
        "conv_transpose1d:options",
        tg.conv_transpose1d,
        _arguments(((1, 4, 3), (4, 1, 3)), outputs=2),
        stride=2,
        padding=1,
        output_padding=1,
        groups=2,
        dilation=2,
    ),
    _check("conv_transpose2d", tg.conv_transpose2d, _arguments(((1, 2, 2, 3), (2, 1, 2, 2)), outputs=1), stride=(2, 1)),
    _check(
        "conv_transpose2d:dilated",
        tg.conv_transpose2d,
        _arguments(((1, 1, 2, 3), (1, 1, 2, 2)), outputs=1),
        output_padding=1,
        dilation=2,
    ),
    _check("conv_transpose3d", tg.conv_transpose3d, _arguments(((1, 1, 2, 2, 2), (1, 2, 2, 1, 2)), outputs=2)),
    OpCheck("im2col", partial(tg.im2col, kernel_size=(2, 3)), lambda make: [(make(2, 2, 3, 4),), (make(1, 2, 3),)]),
    OpCheck(
        "im2col:options",
        partial(tg.im2col, kernel_size=2, dilation=2, padding=1, stride=2),
        lambda m: [(m(1, 1, 4, 5),)],
    ),
    OpCheck(
        "col2im", partial(tg.col2im, output_size=(3, 4), kernel_size=2), lambda make: [(make(2, 8, 6),), (make(4, 6),)]
    ),
    OpCheck(
        "col2im:options",
        partial(tg.col2im, output_size=4, kernel_size=2, padding=1, stride=2),
        lambda make: [(make(1, 4, 9),)],
    ),
]
