"""Checks of powers, logarithms, trigonometric, special and complex functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import core as tg
from ...testing.ops import SHAPES, Make, OpCheck, binary, unary
from .elementwise import SIGNED

INSIDE = unary(0.1, 0.8, signs=True)


def _by_math(function: Callable[[float], float]) -> Callable[..., Any]:
    return np.vectorize(function, otypes=[np.float64])


def complexes(make: Make) -> list[tuple[tg.Tensor, ...]]:
    """Return samples of a real and an imaginary part."""
    return [(make(*shape, signs=True), make(*shape)) for shape in SHAPES]


def last_pairs(make: Make) -> list[tuple[tg.Tensor]]:
    """Return samples of one tensor whose last dimension has length 2."""
    return [(make(*shape, 2),) for shape in SHAPES]


def _from_parts(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: function(tg.complex(a, b))


CHECKS = [
    OpCheck("exp2", tg.exp2, SIGNED, reference=np.exp2),
    OpCheck("expm1", tg.expm1, SIGNED, reference=np.expm1),
    OpCheck("log1p", tg.log1p, INSIDE, reference=np.log1p),
    OpCheck("log2", tg.log2, unary(), reference=np.log2),
    OpCheck("log10", tg.log10, unary(), reference=np.log10),
    OpCheck("rsqrt", tg.rsqrt, unary(), reference=lambda a: 1 / np.sqrt(a)),
    OpCheck("reciprocal", tg.reciprocal, SIGNED, reference=lambda a: 1 / a),
    OpCheck("square", tg.square, SIGNED, reference=np.square),
    OpCheck("float_power", tg.float_power, binary(), reference=np.power, dtypes=("float64",)),
    OpCheck("hypot", tg.hypot, binary(), reference=np.hypot),
    OpCheck("logaddexp", tg.logaddexp, binary(signs=True), reference=np.logaddexp),
    OpCheck("logaddexp2", tg.logaddexp2, binary(signs=True), reference=np.logaddexp2),
    OpCheck("xlogy", tg.xlogy, binary(), reference=lambda a, b: a * np.log(b)),
    OpCheck("logit", tg.logit, unary(0.1, 0.8), reference=lambda a: np.log(a / (1 - a))),
    OpCheck("logit:eps", lambda a: tg.logit(a, 0.15), unary(0.2, 0.7)),
    OpCheck("tan", tg.tan, unary(0.1, 1.2, signs=True), reference=np.tan),
    OpCheck("asin", tg.asin, INSIDE, reference=np.arcsin),
    OpCheck("acos", tg.acos, INSIDE, reference=np.arccos),
    OpCheck("atan", tg.atan, SIGNED, reference=np.arctan),
    OpCheck("atan2", tg.atan2, binary(signs=True), reference=np.arctan2),
    OpCheck("sinh", tg.sinh, SIGNED, reference=np.sinh),
    OpCheck("cosh", tg.cosh, SIGNED, reference=np.cosh),
    OpCheck("asinh", tg.asinh, SIGNED, reference=np.arcsinh),
    OpCheck("acosh", tg.acosh, unary(1.2, 3.0), reference=np.arccosh),
    OpCheck("atanh", tg.atanh, INSIDE, reference=np.arctanh),
    OpCheck("sinc", tg.sinc, SIGNED, reference=np.sinc),
    OpCheck("deg2rad", tg.deg2rad, SIGNED, reference=np.deg2rad),
    OpCheck("rad2deg", tg.rad2deg, SIGNED, reference=np.rad2deg),
    OpCheck("erf", tg.erf, unary(0.0, 3.0, signs=True), reference=_by_math(math.erf)),
    OpCheck("erfc", tg.erfc, unary(0.0, 3.0, signs=True), reference=_by_math(math.erfc)),
    OpCheck("erfinv", tg.erfinv, INSIDE),
    OpCheck("lgamma", tg.lgamma, unary(0.3, 5.0), reference=_by_math(math.lgamma)),
    OpCheck("lgamma:negative", lambda a: tg.lgamma(a - 3.0), unary(0.2, 0.8)),
    OpCheck("digamma", tg.digamma, unary(0.3, 5.0)),
    OpCheck("polygamma", lambda a: tg.polygamma(2, a), unary(0.5, 5.0)),
    OpCheck("polygamma_", lambda a: a.clone().polygamma_(2), unary(0.5, 5.0)),
    OpCheck("complex", lambda a, b: tg.view_as_real(tg.complex(a, b)), complexes, dtypes=("float32",)),
    OpCheck("polar", lambda a, b: tg.view_as_real(tg.polar(a, b)), complexes, dtypes=("float32",)),
    OpCheck("real", _from_parts(tg.real), complexes, dtypes=("float32",)),
    OpCheck("imag", _from_parts(tg.imag), complexes, dtypes=("float32",)),
    OpCheck("conj", _from_parts(lambda z: tg.imag(tg.conj(z))), complexes, dtypes=("float32",)),
    OpCheck("conj_physical", _from_parts(lambda z: tg.imag(tg.conj_physical(z))), complexes, dtypes=("float32",)),
    OpCheck(
        "conj_physical_", _from_parts(lambda z: tg.imag((z * 1.0).conj_physical_())), complexes, dtypes=("float32",)
    ),
    OpCheck("angle", _from_parts(tg.angle), complexes, dtypes=("float32",)),
    OpCheck("abs:complex", _from_parts(tg.abs), complexes, dtypes=("float32",)),
    OpCheck("sgn:complex", _from_parts(lambda z: tg.view_as_real(tg.sgn(z))), complexes, dtypes=("float32",)),
    OpCheck(
        "mul:complex", _from_parts(lambda z: tg.view_as_real(z * z.exp() / (z + 2))), complexes, dtypes=("float32",)
    ),
    OpCheck("view_as_real", _from_parts(tg.view_as_real), complexes, dtypes=("float32",)),
    OpCheck(
        "view_as_complex", lambda a: tg.real(tg.view_as_complex(a.contiguous()) ** 2), last_pairs, dtypes=("float32",)
    ),
]
EXEMPT = {"resolve_conj": "the tensor itself"}
