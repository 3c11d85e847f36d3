"""PyTorch's second names of operations: ``multiply`` for ``mul``."""

from . import clamping, elementwise, rounding, trigonometry

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

absolute = elementwise.abs
clip = clamping.clamp
divide = elementwise.div
greater = elementwise.gt
greater_equal = elementwise.ge
less = elementwise.lt
less_equal = elementwise.le
multiply = elementwise.mul
negative = elementwise.neg
not_equal = elementwise.ne
subtract = elementwise.sub
true_divide = elementwise.div
fix = rounding.trunc
arccos = trigonometry.acos
arccosh = trigonometry.acosh
arcsin = trigonometry.asin
arcsinh = trigonometry.asinh
arctan = trigonometry.atan
arctan2 = trigonometry.atan2
arctanh = trigonometry.atanh

IN_PLACE = {
    "absolute_": elementwise.IN_PLACE["abs_"],
    "clip_": clamping.IN_PLACE["clamp_"],
    "divide_": elementwise.IN_PLACE["div_"],
    "greater_": elementwise.IN_PLACE["gt_"],
    "greater_equal_": elementwise.IN_PLACE["ge_"],
    "less_": elementwise.IN_PLACE["lt_"],
    "less_equal_": elementwise.IN_PLACE["le_"],
    "multiply_": elementwise.IN_PLACE["mul_"],
    "negative_": elementwise.IN_PLACE["neg_"],
    "not_equal_": elementwise.IN_PLACE["ne_"],
    "subtract_": elementwise.IN_PLACE["sub_"],
    "true_divide_": elementwise.IN_PLACE["div_"],
    "fix_": rounding.IN_PLACE["trunc_"],
    "arccos_": trigonometry.IN_PLACE["acos_"],
    "arccosh_": trigonometry.IN_PLACE["acosh_"],
    "arcsin_": trigonometry.IN_PLACE["asin_"],
    "arcsinh_": trigonometry.IN_PLACE["asinh_"],
    "arctan_": trigonometry.IN_PLACE["atan_"],
    "arctan2_": trigonometry.IN_PLACE["atan2_"],
    "arctanh_": trigonometry.IN_PLACE["atanh_"],
}
