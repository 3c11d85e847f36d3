"""PyTorch's second names of operations: ``multiply`` for ``mul``."""

from .elementwise import basic, clamping, rounding, trigonometric

__all__ = [
    "absolute",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "clip",
    "divide",
    "fix",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "multiply",
    "negative",
    "not_equal",
    "subtract",
    "true_divide",
]
METHODS = __all__

absolute = basic.abs
clip = clamping.clamp
divide = basic.div
greater = basic.gt
greater_equal = basic.ge
less = basic.lt
less_equal = basic.le
multiply = basic.mul
negative = basic.neg
not_equal = basic.ne
subtract = basic.sub
true_divide = basic.div
fix = rounding.trunc
arccos = trigonometric.acos
arccosh = trigonometric.acosh
arcsin = trigonometric.asin
arcsinh = trigonometric.asinh
arctan = trigonometric.atan
arctan2 = trigonometric.atan2
arctanh = trigonometric.atanh

IN_PLACE = {
    "absolute_": basic.IN_PLACE["abs_"],
    "clip_": clamping.IN_PLACE["clamp_"],
    "divide_": basic.IN_PLACE["div_"],
    "greater_": basic.IN_PLACE["gt_"],
    "greater_equal_": basic.IN_PLACE["ge_"],
    "less_": basic.IN_PLACE["lt_"],
    "less_equal_": basic.IN_PLACE["le_"],
    "multiply_": basic.IN_PLACE["mul_"],
    "negative_": basic.IN_PLACE["neg_"],
    "not_equal_": basic.IN_PLACE["ne_"],
    "subtract_": basic.IN_PLACE["sub_"],
    "true_divide_": basic.IN_PLACE["div_"],
    "fix_": rounding.IN_PLACE["trunc_"],
    "arccos_": trigonometric.IN_PLACE["acos_"],
    "arccosh_": trigonometric.IN_PLACE["acosh_"],
    "arcsin_": trigonometric.IN_PLACE["asin_"],
    "arcsinh_": trigonometric.IN_PLACE["asinh_"],
    "arctan_": trigonometric.IN_PLACE["atan_"],
    "arctan2_": trigonometric.IN_PLACE["atan2_"],
    "arctanh_": trigonometric.IN_PLACE["atanh_"],
}
