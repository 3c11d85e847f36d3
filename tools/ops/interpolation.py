"""Checks of interpolation and adaptive pooling."""

from __future__ import annotations

from functools import partial
from typing import Any

from ... import core as tg
from ...testing.ops import OpCheck, Samples


def _distinct(*shapes: tuple[int, ...]) -> Samples:
    return lambda make: [(make.distinct(*shape),) for shape in shapes]


def _check(variant: str, samples: Samples, **options: Any) -> OpCheck:
    return OpCheck(f"interpolate:{variant}", partial(tg.interpolate, **options), samples)


CHECKS = [
    OpCheck("interpolate", partial(tg.interpolate, scale_factor=2), _distinct((1, 2, 3), (2, 1, 2, 3), (0, 1, 2, 2))),
    _check("nearest-exact", _distinct((1, 2, 5)), size=3, mode="nearest-exact"),
    _check("linear", _distinct((1, 2, 5), (1, 1, 1)), size=3, mode="linear"),
    _check("bilinear", _distinct((1, 2, 3, 4)), scale_factor=(2.0, 0.6), mode="bilinear", align_corners=True),
    _check("antialias", _distinct((1, 1, 5, 6)), size=(2, 3), mode="bilinear", antialias=True),
    _check("bicubic", _distinct((1, 1, 3, 4)), size=(5, 3), mode="bicubic"),
    _check("trilinear", _distinct((1, 1, 2, 3, 2)), size=3, mode="trilinear", align_corners=False),
    _check("area", _distinct((1, 1, 5, 4)), size=(2, 3), mode="area"),
    OpCheck("adaptive_avg_pool1d", partial(tg.adaptive_avg_pool1d, output_size=2), _distinct((2, 2, 5), (1, 4))),
    OpCheck("adaptive_avg_pool2d", partial(tg.adaptive_avg_pool2d, output_size=(2, None)), _distinct((2, 1, 3, 4))),
    OpCheck("adaptive_avg_pool3d", partial(tg.adaptive_avg_pool3d, output_size=2), _distinct((1, 2, 3, 2, 3))),
    OpCheck("adaptive_max_pool1d", partial(tg.adaptive_max_pool1d, output_size=2), _distinct((2, 2, 5), (1, 4))),
    OpCheck("adaptive_max_pool2d", partial(tg.adaptive_max_pool2d, output_size=(2, 3)), _distinct((2, 1, 3, 4))),
    OpCheck("adaptive_max_pool3d", partial(tg.adaptive_max_pool3d, output_size=2), _distinct((1, 2, 3, 2, 3))),
]
