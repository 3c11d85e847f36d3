"""Checks of pooling."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import core as tg
from ...testing.ops import Make, OpCheck, Samples


def _distinct(*shapes: tuple[int, ...]) -> Samples:
    return lambda make: [(make.distinct(*shape),) for shape in shapes]


def _positive(*shapes: tuple[int, ...]) -> Samples:
    return lambda make: [(make(*shape),) for shape in shapes]


def _check(name: str, function: Callable[..., Any], samples: Samples, **options: Any) -> OpCheck:
    return OpCheck(name, partial(function, **options), samples)


def _fractional(dims: int, x: tg.Tensor, **options: Any) -> tg.Tensor:
    """Return the pooled image, with steps that are the same at each call."""
    shape = (*(x.shape[:2] if x.ndim == dims + 2 else (1, x.shape[0])), dims)
    samples = tg.linspace(0.1, 0.9, int(np.prod(shape)), dtype=x.dtype).reshape(shape)
    pool: Callable[..., tg.Tensor] = (tg.fractional_max_pool2d, tg.fractional_max_pool3d)[dims - 2]
    return pool(x, 2, _random_samples=samples, **options)


def _unpool(dims: int) -> Samples:
    def samples(make: Make) -> list[tuple[Any, ...]]:
        indices = np.arange(2**dims).reshape((1, 1) + (2,) * dims)
        return [(make(1, 2, *(2,) * dims), tg.tensor(np.concatenate([indices * 2, indices + 1], axis=1)))]

    return samples


CHECKS = [
    _check("max_pool1d", tg.max_pool1d, _distinct((2, 2, 5), (2, 4), (0, 2, 4)), kernel_size=2),
    _check(
        "max_pool1d:options",
        tg.max_pool1d,
        _distinct((2, 7)),
        kernel_size=3,
        stride=2,
        padding=1,
        dilation=2,
        ceil_mode=True,
    ),
    _check("max_pool2d", tg.max_pool2d, _distinct((2, 2, 4, 4), (1, 5, 3), (0, 1, 2, 2)), kernel_size=2),
    _check("max_pool2d:options", tg.max_pool2d, _distinct((1, 2, 5, 6)), kernel_size=(3, 2), stride=(1, 3), padding=1),
    _check("max_pool2d:overlapping", tg.max_pool2d, _distinct((1, 1, 5, 5)), kernel_size=3, stride=1),
    _check("max_pool3d", tg.max_pool3d, _distinct((1, 2, 2, 4, 3)), kernel_size=2),
    _check("max_pool3d:large", tg.max_pool3d, _distinct((1, 1, 6, 5, 5)), kernel_size=(6, 5, 5)),
    _check("avg_pool1d", tg.avg_pool1d, _positive((2, 2, 5), (2, 4), (0, 2, 4)), kernel_size=2),
    _check("avg_pool1d:options", tg.avg_pool1d, _positive((2, 7)), kernel_size=3, stride=2, padding=1, ceil_mode=True),
    _check("avg_pool2d", tg.avg_pool2d, _positive((2, 2, 4, 4), (1, 5, 3)), kernel_size=2),
    _check(
        "avg_pool2d:uncounted",
        tg.avg_pool2d,
        _positive((1, 2, 4, 5)),
        kernel_size=3,
        stride=2,
        padding=1,
        count_include_pad=False,
    ),
    _check("avg_pool2d:divisor", tg.avg_pool2d, _positive((1, 1, 4, 4)), kernel_size=2, stride=1, divisor_override=3),
    _check("avg_pool3d", tg.avg_pool3d, _positive((1, 2, 2, 4, 3)), kernel_size=2),
    _check("lp_pool1d", tg.lp_pool1d, _positive((1, 2, 5)), norm_type=2, kernel_size=2),
    _check("lp_pool2d", tg.lp_pool2d, _positive((2, 4, 5)), norm_type=3, kernel_size=2, ceil_mode=True),
    _check("lp_pool3d", tg.lp_pool3d, _positive((1, 1, 2, 3, 2)), norm_type=2, kernel_size=2, stride=1),
    _check("fractional_max_pool2d", partial(_fractional, 2), _distinct((2, 2, 5, 6), (1, 4, 4)), output_size=(2, 3)),
    _check("fractional_max_pool3d", partial(_fractional, 3), _distinct((1, 2, 4, 5, 4)), output_ratio=0.5),
    _check("max_unpool1d", tg.max_unpool1d, _unpool(1), kernel_size=2, stride=2),
    _check("max_unpool2d", tg.max_unpool2d, _unpool(2), kernel_size=2, stride=2),
    _check("max_unpool3d", tg.max_unpool3d, _unpool(3), kernel_size=2, stride=2),
]
