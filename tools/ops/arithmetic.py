"""Checks of further arithmetic, logic, rounding and predicates."""

from __future__ import annotations

import numpy as np

from ... import core as tg
from ...testing.ops import SHAPES, Make, OpCheck, binary
from .elementwise import DIVISIBLE, SIGNED, integers

SIGNED_PAIRS = binary(signs=True)
REAL = ("int64", "float16", "float32", "float64")


def triples(make: Make) -> list[tuple[tg.Tensor, ...]]:
    """Return samples of three tensors that are broadcast together."""
    shapes = [((), (), ()), ((3,), (1,), (3,)), ((2, 3), (3,), (2, 1)), ((0,), (1,), ()), ((2, 1, 3), (2, 1), (3,))]
    return [tuple(make(*shape) for shape in each) for each in shapes]


def booleans(make: Make) -> list[tuple[tg.Tensor, tg.Tensor]]:
    """Return samples of two boolean tensors."""
    return [(make.booleans(*shape), make.booleans(*shape)) for shape in SHAPES]


def single_integers(make: Make) -> list[tuple[tg.Tensor]]:
    """Return samples of one integer tensor."""
    return [(make.integers(*shape, low=-9, high=9),) for shape in SHAPES]


CHECKS = [
    OpCheck("__rdiv__", lambda a, b: a.__rdiv__(b), binary(), reference=lambda a, b: b / a),
    OpCheck("positive", tg.positive, SIGNED, reference=np.positive),
    OpCheck("sgn", tg.sgn, SIGNED, reference=np.sign),
    OpCheck("fmod", tg.fmod, binary(), reference=np.fmod, dtypes=DIVISIBLE),
    OpCheck("fmax", tg.fmax, binary(), reference=np.fmax),
    OpCheck("fmin", tg.fmin, binary(), reference=np.fmin),
    OpCheck("copysign", tg.copysign, SIGNED_PAIRS, reference=np.copysign),
    OpCheck("heaviside", tg.heaviside, SIGNED_PAIRS, orders=0, reference=np.heaviside),
    OpCheck("rsub", tg.rsub, binary(), reference=lambda a, b: b - a),
    OpCheck("addcmul", lambda a, b, c: tg.addcmul(a, b, c, value=2), triples, reference=lambda a, b, c: a + 2 * b * c),
    OpCheck("addcdiv", lambda a, b, c: tg.addcdiv(a, b, c, value=2), triples, reference=lambda a, b, c: a + 2 * b / c),
    OpCheck("lerp", tg.lerp, triples, reference=lambda a, b, w: a + w * (b - a)),
    OpCheck("nan_to_num", tg.nan_to_num, SIGNED, reference=np.nan_to_num),
    OpCheck("floor", tg.floor, SIGNED, reference=np.floor, dtypes=REAL),
    OpCheck("ceil", tg.ceil, SIGNED, reference=np.ceil, dtypes=REAL),
    OpCheck("trunc", tg.trunc, SIGNED, reference=np.trunc, dtypes=REAL),
    OpCheck("frac", tg.frac, SIGNED, reference=lambda a: a - np.trunc(a), dtypes=REAL),
    OpCheck("round", tg.round, SIGNED, reference=np.round, dtypes=REAL),
    OpCheck(
        "round:decimals", lambda a: tg.round(a, decimals=1), SIGNED, reference=lambda a: np.round(a, 1), dtypes=REAL
    ),
    OpCheck("isinf", tg.isinf, SIGNED, orders=0, reference=np.isinf),
    OpCheck("isposinf", tg.isposinf, SIGNED, orders=0, reference=np.isposinf),
    OpCheck("isneginf", tg.isneginf, SIGNED, orders=0, reference=np.isneginf),
    OpCheck("isreal", tg.isreal, SIGNED, orders=0, reference=np.isreal),
    OpCheck("signbit", tg.signbit, SIGNED, orders=0, reference=np.signbit),
    OpCheck("isclose", tg.isclose, binary(), orders=0, reference=np.isclose),
    OpCheck("logical_and", tg.logical_and, SIGNED_PAIRS, orders=0, reference=np.logical_and),
    OpCheck("logical_or", tg.logical_or, SIGNED_PAIRS, orders=0, reference=np.logical_or),
    OpCheck("logical_xor", tg.logical_xor, SIGNED_PAIRS, orders=0, reference=np.logical_xor),
    OpCheck("bitwise_and", tg.bitwise_and, integers, orders=0, reference=np.bitwise_and),
    OpCheck("bitwise_or", tg.bitwise_or, integers, orders=0, reference=np.bitwise_or),
    OpCheck("bitwise_xor", tg.bitwise_xor, integers, orders=0, reference=np.bitwise_xor),
    OpCheck("bitwise_xor:booleans", tg.bitwise_xor, booleans, orders=0, reference=np.bitwise_xor),
    OpCheck("bitwise_not", tg.bitwise_not, single_integers, orders=0, reference=np.invert),
    OpCheck("bitwise_left_shift", tg.bitwise_left_shift, integers, orders=0, reference=np.left_shift),
    OpCheck("bitwise_right_shift", tg.bitwise_right_shift, integers, orders=0, reference=np.right_shift),
]
EXEMPT = {
    "allclose": "a Python bool; tests/core/test_elementwise.py",
    "equal": "a Python bool; tests/core/test_elementwise.py",
}
