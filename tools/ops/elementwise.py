"""Checks of the element-wise operations that operators use."""

from __future__ import annotations

import numpy as np

from ... import core as tg
from ...testing.ops import PAIRS, Make, OpCheck, binary, unary

SIGNED = unary(signs=True)
DIVISIBLE = ("float16", "float32", "float64")  # converted to integers, samples become zeros
CHECKS = [
    OpCheck("add", tg.add, binary(), reference=np.add),
    OpCheck("add:alpha", lambda a, b: tg.add(a, b, alpha=3), binary(), reference=lambda a, b: a + 3 * b),
    OpCheck("sub", tg.sub, binary(), reference=np.subtract),
    OpCheck("sub:alpha", lambda a, b: tg.sub(a, b, alpha=3), binary(), reference=lambda a, b: a - 3 * b),
    OpCheck("mul", tg.mul, binary(), reference=np.multiply),
    OpCheck("div", tg.div, binary(), reference=np.true_divide),
    OpCheck("div:floor", lambda a, b: tg.div(a, b, rounding_mode="floor"), binary(), dtypes=DIVISIBLE),
    OpCheck("div:trunc", lambda a, b: tg.div(a, b, rounding_mode="trunc"), binary(), dtypes=DIVISIBLE),
    OpCheck("floor_divide", tg.floor_divide, binary(), reference=np.floor_divide, dtypes=DIVISIBLE),
    OpCheck("remainder", tg.remainder, binary(), reference=np.remainder, dtypes=DIVISIBLE),
    OpCheck("pow", tg.pow, binary(), reference=np.power),
    *(
        OpCheck(f"pow:{n}", lambda a, n=n: tg.pow(a, n), unary(), reference=lambda a, n=n: a**n)
        for n in (0, 1, 2, 3, 0.5)
    ),
    OpCheck("pow:base", lambda b: tg.pow(2.5, b), SIGNED, reference=lambda b: 2.5**b),
    OpCheck("maximum", tg.maximum, binary(), reference=np.maximum),
    OpCheck("minimum", tg.minimum, binary(), reference=np.minimum),
    OpCheck("exp", tg.exp, SIGNED, reference=np.exp),
    OpCheck("log", tg.log, unary(), reference=np.log),
    OpCheck("sqrt", tg.sqrt, unary(), reference=np.sqrt),
    OpCheck("sin", tg.sin, SIGNED, reference=np.sin),
    OpCheck("cos", tg.cos, SIGNED, reference=np.cos),
    OpCheck("tanh", tg.tanh, SIGNED, reference=np.tanh),
    OpCheck("sigmoid", tg.sigmoid, SIGNED, reference=lambda a: 1 / (1 + np.exp(-a))),
    OpCheck("neg", tg.neg, SIGNED, reference=np.negative),
    OpCheck("abs", tg.abs, SIGNED, reference=np.absolute),
    OpCheck("sign", tg.sign, SIGNED, reference=np.sign),
    OpCheck("relu", tg.relu, SIGNED, reference=lambda a: np.maximum(a, 0)),
    OpCheck("clamp", lambda a: tg.clamp(a, -0.9, 1.1), SIGNED, reference=lambda a: np.clip(a, -0.9, 1.1)),
    OpCheck(
        "clamp:tensors", lambda a, b: tg.clamp(a, b, b + 0.3), binary(), reference=lambda a, b: np.clip(a, b, b + 0.3)
    ),
    OpCheck("clamp_min", tg.clamp_min, binary(), reference=np.maximum),
    OpCheck("clamp_max", tg.clamp_max, binary(), reference=np.minimum),
    OpCheck("eq", tg.eq, binary(), orders=0, reference=np.equal),
    OpCheck("ne", tg.ne, binary(), orders=0, reference=np.not_equal),
    OpCheck("lt", tg.lt, binary(), orders=0, reference=np.less),
    OpCheck("le", tg.le, binary(), orders=0, reference=np.less_equal),
    OpCheck("gt", tg.gt, binary(), orders=0, reference=np.greater),
    OpCheck("ge", tg.ge, binary(), orders=0, reference=np.greater_equal),
    OpCheck("logical_not", tg.logical_not, SIGNED, orders=0, reference=np.logical_not),
    OpCheck("isnan", tg.isnan, SIGNED, orders=0, reference=np.isnan),
    OpCheck("isfinite", tg.isfinite, SIGNED, orders=0, reference=np.isfinite),
]


def integers(make: Make) -> list[tuple[tg.Tensor, tg.Tensor]]:
    """Return samples of two integer tensors, the second one small and not zero."""
    return [(make.integers(*first, low=-9, high=9), make.integers(*second, low=1, high=5)) for first, second in PAIRS]
