"""Element-wise operations on 65,536 numbers."""

from __future__ import annotations

from .base import between, by_name, cases, normal

SHAPE = (256, 256)
UNARY = "abs neg exp expm1 sin cos tan sinh cosh tanh atan asinh sigmoid erf erfc sign floor round trunc square isnan isfinite"
POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma"
INSIDE = "asin acos atanh erfinv logit"
RECTIFIERS = "relu relu6 leaky_relu elu selu celu gelu silu mish softplus"
OTHER_ACTIVATIONS = "softsign hardtanh hardswish hardsigmoid logsigmoid tanhshrink"
BINARY = "add sub mul div maximum minimum atan2 fmod hypot logaddexp"
COMPARISONS = "eq lt isclose"

CASES = (
    *cases((normal(*SHAPE),), by_name(UNARY)),
    *cases((between(0.1, 3.0, *SHAPE),), by_name(POSITIVE)),
    *cases((between(0.1, 0.9, *SHAPE),), by_name(INSIDE)),
    *cases(
        (normal(*SHAPE),),
        by_name(" ".join(f"nn.functional.{name}" for name in f"{RECTIFIERS} {OTHER_ACTIVATIONS}".split())),
    ),
    *cases((normal(*SHAPE), between(0.5, 2.0, *SHAPE)), by_name(BINARY)),
    *cases((normal(*SHAPE), normal(*SHAPE)), by_name(COMPARISONS)),
    *cases(
        (normal(*SHAPE),),
        {
            "pow(x, 3)": lambda lib, x: lib.pow(x, 3),
            "clamp": lambda lib, x: lib.clamp(x, -1.0, 1.0),
            "where": lambda lib, x: lib.where(x > 0, x, 0.5),
            "masked_fill": lambda lib, x: x.masked_fill(x > 0, 1.0),
            "dropout": lambda lib, x: lib.nn.functional.dropout(x, 0.5),
            "to float64": lambda lib, x: x.to(lib.float64),
        },
    ),
    *cases(
        (normal(*SHAPE), normal(256)),
        {"add, broadcast": lambda lib, x, y: x + y, "mul, broadcast": lambda lib, x, y: x * y},
    ),
    *cases((between(0.5, 2.0, *SHAPE), normal(*SHAPE)), {"pow(x, y)": lambda lib, x, y: lib.pow(x, y)}),
    *cases((normal(*SHAPE), normal(*SHAPE), normal(*SHAPE)), by_name("addcmul lerp")),
)
