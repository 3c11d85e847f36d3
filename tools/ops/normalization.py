"""Checks of normalization, with and without learned parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...core import Tensor
from ...nn import functional as F
from ...nn.functional.native import native_group_norm
from ...testing.ops import Make, OpCheck, Samples


def _layer_norm(x: Tensor, *parameters: Any) -> Tensor:
    return F.layer_norm(x, parameters[0].shape if parameters else x.shape[-1:], *parameters)


def _rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, weight.shape, weight, 1e-3)


def _batch_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    return F.batch_norm(x, None, None, weight, bias, training=True)


def _batch_norm_eval(x: Tensor, mean: Tensor, var: Tensor, *parameters: Any) -> Tensor:
    return F.batch_norm(x, mean, var, *parameters)


def _instance_norm(x: Tensor, *parameters: Any) -> Tensor:
    return F.instance_norm(x, None, None, *parameters)


def _native_group_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None) -> Any:
    return native_group_norm(x, weight, bias, len(x), 4, x.numel() // (4 * len(x)), 2, 1e-3)


def _with(parameters: int, *samples: tuple[Sequence[int], Sequence[int]]) -> Samples:
    """Return samples of an input of the first shape and ``parameters`` tensors of the second."""

    def make_all(make: Make) -> list[tuple[Any, ...]]:
        return [(make(*shape, signs=True), *(make(*other) for _ in range(parameters))) for shape, other in samples]

    return make_all


CHECKS = [
    OpCheck("layer_norm", _layer_norm, _with(2, ((3, 4), (4,)), ((2, 2, 3), (2, 3)), ((0, 3), (3,)))),
    OpCheck("layer_norm:plain", _layer_norm, _with(0, ((2, 3), ()))),
    OpCheck("rms_norm", _rms_norm, _with(1, ((3, 4), (4,)), ((2, 2, 3), (2, 3)))),
    OpCheck("batch_norm", _batch_norm, _with(2, ((4, 2), (2,)), ((2, 2, 3), (2,)), ((2, 1, 2, 2), (1,)))),
    OpCheck("batch_norm:plain", _batch_norm, _with(0, ((3, 2), ()))),
    OpCheck("batch_norm:eval", _batch_norm_eval, _with(4, ((3, 2), (2,)), ((0, 2, 3), (2,)))),
    OpCheck("instance_norm", _instance_norm, _with(2, ((2, 2, 3), (2,)), ((1, 2, 2, 2), (2,)))),
    OpCheck("native_group_norm", _native_group_norm, lambda make: [(make(2, 4, 3), make(4), make(4)), (make(3, 4),)]),
    OpCheck("group_norm", partial(F.group_norm, num_groups=2), lambda make: [(make(2, 4, 3),), (make(3, 4),)]),
    OpCheck(
        "local_response_norm", partial(F.local_response_norm, size=2), _with(0, ((1, 3, 2), ()), ((2, 4, 1, 2), ()))
    ),
]
