"""Trigonometric and hyperbolic functions and their inverses; angles are in radians."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Array
from ..table.factories import binary, unary
from ..table.operands import real_only

sin = unary(
    "sin",
    np.sin,
    lambda xp, g, a: g * xp.cos(a),
    saves="a",
    doc="Return the sine of angles in radians.",
    method=True,
    in_place=True,
)
cos = unary(
    "cos",
    np.cos,
    lambda xp, g, a: -g * xp.sin(a),
    saves="a",
    doc="Return the cosine of angles in radians.",
    method=True,
    in_place=True,
)
tanh = unary(
    "tanh",
    np.tanh,
    lambda xp, g, out: g - g * out * out,
    saves="o",
    doc="Return the hyperbolic tangent of each element.",
    method=True,
    in_place=True,
)


def _towards(xp: Any, g: Any, a: Any, b: Any) -> Any:
    # The angle is not defined at the origin; its gradient there is 0.
    square = a * a + b * b
    return g * xp.where(square == 0, 0.0, 1 / xp.where(square == 0, 1.0, square))


def _acosh_rule(xp: Any, g: Any, a: Any) -> Any:
    if a.dtype.kind != "c":
        return g / xp.sqrt(a * a - 1)
    # Where the real part is negative, the root of the product would have the other sign.
    return g / (xp.sqrt(a - 1) * xp.sqrt(a + 1))


def _sinc(x: Array) -> Any:
    angle = np.pi * x
    return np.where(x == 0, 1.0, np.sin(angle) / np.where(x == 0, 1.0, angle))


def _sinc_rule(xp: Any, g: Any, a: Any) -> Any:
    angle = xp.where(a == 0, 1.0, a) * np.pi
    slope = (angle * xp.cos(angle) - xp.sin(angle)) * np.pi / (angle * angle)
    return xp.where(a == 0, 0.0, g * slope)


tan = unary(
    "tan",
    np.tan,
    lambda xp, g, out: g * (1 + out * out),
    saves="o",
    doc="Return the tangent of angles in radians.",
    method=True,
    in_place=True,
)
asin = unary(
    "asin",
    np.arcsin,
    lambda xp, g, a: g / xp.sqrt(1 - a * a),
    saves="a",
    doc="Return the inverse sine in radians, from -pi/2 to pi/2; nan outside [-1, 1].",
    method=True,
    in_place=True,
    synonyms=("arcsin",),
)
acos = unary(
    "acos",
    np.arccos,
    lambda xp, g, a: -g / xp.sqrt(1 - a * a),
    saves="a",
    doc="Return the inverse cosine in radians, from 0 to pi; nan outside [-1, 1].",
    method=True,
    in_place=True,
    synonyms=("arccos",),
)
atan = unary(
    "atan",
    np.arctan,
    lambda xp, g, a: g / (1 + a * a),
    saves="a",
    doc="Return the inverse tangent in radians, from -pi/2 to pi/2.",
    method=True,
    in_place=True,
    synonyms=("arctan",),
)
atan2 = binary(
    "atan2",
    real_only(np.arctan2),
    lambda xp, g, a, b: _towards(xp, g, a, b) * b,
    lambda xp, g, a, b: _towards(xp, -g, a, b) * a,
    saves=("ab", "ab"),
    floats=True,
    doc="Return the angle of the point ``(x, y) = (other, input)`` in radians, from -pi to pi.",
    method=True,
    in_place=True,
    synonyms=("arctan2",),
    numbers="neither",
)
sinh = unary(
    "sinh",
    np.sinh,
    lambda xp, g, a: g * xp.cosh(a),
    saves="a",
    doc="Return the hyperbolic sine of each element.",
    method=True,
    in_place=True,
)
cosh = unary(
    "cosh",
    np.cosh,
    lambda xp, g, a: g * xp.sinh(a),
    saves="a",
    doc="Return the hyperbolic cosine of each element.",
    method=True,
    in_place=True,
)
asinh = unary(
    "asinh",
    np.arcsinh,
    lambda xp, g, a: g / xp.sqrt(a * a + 1),
    saves="a",
    doc="Return the inverse hyperbolic sine of each element.",
    method=True,
    in_place=True,
    synonyms=("arcsinh",),
)
acosh = unary(
    "acosh",
    np.arccosh,
    _acosh_rule,
    saves="a",
    doc="Return the inverse hyperbolic cosine; nan for numbers below 1.",
    method=True,
    in_place=True,
    synonyms=("arccosh",),
)
atanh = unary(
    "atanh",
    np.arctanh,
    lambda xp, g, a: g / (1 - a * a),
    saves="a",
    doc="Return the inverse hyperbolic tangent; nan outside [-1, 1].",
    method=True,
    in_place=True,
    synonyms=("arctanh",),
)
sinc = unary(
    "sinc",
    _sinc,
    _sinc_rule,
    saves="a",
    doc="Return ``sin(pi * input) / (pi * input)``; it is 1 at 0.",
    method=True,
    in_place=True,
    synonyms=("special.sinc",),
)
deg2rad = unary(
    "deg2rad",
    real_only(lambda x: x * (np.pi / 180)),
    lambda xp, g: g * (np.pi / 180),
    saves="",
    doc="Return ``input * pi / 180``: degrees converted to radians.",
    method=True,
    in_place=True,
)
rad2deg = unary(
    "rad2deg",
    real_only(lambda x: x * (180 / np.pi)),
    lambda xp, g: g * (180 / np.pi),
    saves="",
    doc="Return ``input * 180 / pi``: radians converted to degrees.",
    method=True,
    in_place=True,
)
