"""Checks of activations; of random ones in evaluation mode."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...core import Tensor
from ...nn import functional as F
from ...testing.ops import SHAPES, Make, OpCheck, unary

# Away from 0 and from the other points where some of these are not differentiable.
both_signs = unary(0.6, 0.9, signs=True)
far = unary(3.5, 7.5, signs=True)


def _prelu(make: Make) -> list[tuple[Any, ...]]:
    cases = [((2, 3, 2), (3,)), ((4,), (1,)), ((), (1,)), ((0, 2), (2,)), ((2, 3), (1,))]
    return [(make(*shape, signs=True), make(*weight)) for shape, weight in cases]


def _halves(make: Make) -> list[tuple[Tensor, ...]]:
    return [(make(*shape, signs=True),) for shape in ((4,), (2, 6), (0, 2))]


def _at_least_1d(make: Make) -> list[tuple[Tensor, ...]]:
    return [(make(*shape, signs=True),) for shape in SHAPES]


EXEMPT = dict.fromkeys(("dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"), "random")
CHECKS = [
    OpCheck("celu", partial(F.celu, alpha=1.5), both_signs),
    OpCheck("elu", partial(F.elu, alpha=0.7), both_signs),
    OpCheck("gelu", F.gelu, both_signs),
    OpCheck("gelu:tanh", partial(F.gelu, approximate="tanh"), both_signs),
    OpCheck("glu", F.glu, _halves),
    OpCheck("hardshrink", F.hardshrink, both_signs),
    OpCheck("hardsigmoid", F.hardsigmoid, both_signs),
    OpCheck("hardsigmoid:outside", F.hardsigmoid, far),
    OpCheck("hardswish", F.hardswish, both_signs),
    OpCheck("hardswish:outside", F.hardswish, far),
    OpCheck("hardtanh", partial(F.hardtanh, min_val=-0.5, max_val=2.0), both_signs),
    OpCheck("leaky_relu", F.leaky_relu, both_signs),
    OpCheck("logsigmoid", F.logsigmoid, both_signs),
    OpCheck("mish", F.mish, both_signs),
    OpCheck("prelu", F.prelu, _prelu),
    OpCheck("relu6", F.relu6, far),
    OpCheck("rrelu", F.rrelu, both_signs),
    OpCheck("selu", F.selu, both_signs),
    OpCheck("silu", F.silu, far),
    OpCheck("softmin", partial(F.softmin, dim=-1), _at_least_1d),
    OpCheck("softplus", partial(F.softplus, beta=2.0, threshold=10.0), both_signs),
    OpCheck("softplus:threshold", F.softplus, unary(25.0, 30.0)),
    OpCheck("softshrink", F.softshrink, both_signs),
    OpCheck("softsign", F.softsign, both_signs),
    OpCheck("tanhshrink", F.tanhshrink, both_signs),
    OpCheck("threshold", partial(F.threshold, threshold=0.1, value=-2.0), both_signs),
]
