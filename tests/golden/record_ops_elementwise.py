"""Records values and gradients of element-wise operations, for tests/core/test_ops_golden.py."""

from operations import Recorder

inf, nan = float("inf"), float("nan")
EDGES = [-inf, -2.5, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.7, inf, nan]
INPUTS = {
    "edges": ("float64", EDGES),
    "edges32": ("float32", EDGES),
    "small": ("float64", [-0.9, -0.4, 0.0, 0.2, 0.7, 0.99]),
    "large": ("float64", [-1e3, -88.0, -20.5, 15.25, 90.0, 710.0]),
    "pairs": ("float64", [-inf, -2.5, -1.0, 0.0, 0.0, -0.0, 2.0, 2.0, 3.0, 1.5, inf, nan, 1.0, 4.0]),
    "others": ("float64", [-inf, 2.0, -1.0, 0.0, 2.0, 1.0, 2.0, -3.0, nan, 0.0, inf, 1.0, nan, -2.5]),
    "pairs32": ("float32", [-2.5, -1.0, 0.0, 0.0, 2.0, 2.0, 3.0, 1.5, nan, 1.0]),
    "others32": ("float32", [2.0, -1.0, 0.0, 2.0, 2.0, -3.0, 0.5, 0.0, 1.0, nan]),
    "column": ("float64", [[-1.5], [0.0], [2.0]]),
    "row": ("float64", [[-2.0, 0.5, 2.0, 3.0]]),
    "weights": ("float64", [[0.0, 0.25, 0.5, 1.0]]),
    "ints": ("int64", [-7, -3, 0, 2, 5, 9]),
    "divisors": ("int64", [2, -2, 3, -5, 4, 2]),
    "int32": ("int32", [-3, 0, 4]),
    "bytes": ("uint8", [0, 3, 200]),
    "bools": ("bool", [True, False, True]),
    "others_bool": ("bool", [True, True, False]),
    "gammas": ("float64", [-7.3, -2.5, -0.5, 0.3, 1.0, 1.5, 2.0, 3.7, 40.0]),
    "sizes": ("float64", [0.5, 1.25, 2.0, 3.0]),
    "scalar": ("float64", 1.25),
    "empty": ("float64", []),
    "angles": ("complex128", [[1.5, -0.5], [0.3, 0.7], [-1.2, 0.4], [0.0, 0.0]]),
    "turns": ("complex128", [[0.5, 1.0], [-1.0, 0.25], [2.0, -0.5], [1.0, 1.0]]),
    "turns64": ("complex64", [[0.5, 1.0], [-1.0, 0.25], [2.0, -0.5], [1.0, 1.0]]),
    "reals": ("float64", [0.5, -1.25, 2.0, 3.0]),
}
UNARY = """abs neg sign sgn floor ceil round trunc frac exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos
tan asin acos atan sinh cosh tanh asinh acosh atanh sinc sigmoid logit erf erfc erfinv lgamma relu deg2rad rad2deg nan_to_num
isnan isinf isfinite isposinf isneginf isreal signbit logical_not positive angle""".split()
BINARY = """add sub mul div atan2 hypot copysign logaddexp logaddexp2 xlogy maximum minimum fmax fmin fmod remainder
float_power pow eq ne lt le gt ge logical_and logical_or logical_xor floor_divide""".split()
NOT_DIFFERENTIABLE = {"floor_divide", "heaviside", "eq", "ne", "lt", "le", "gt", "ge"}
INTEGER_UNARY = (
    """abs neg sign floor ceil round trunc square exp sin sqrt sigmoid isnan signbit logical_not erf lgamma""".split()
)
NOT_OF_BOOLEANS = {"abs", "floor", "ceil", "round", "trunc"}
WITHOUT_SCALARS = (
    """maximum minimum fmax fmin logaddexp logaddexp2 hypot atan2 logical_and logical_or logical_xor""".split()
)
INTEGER_BINARY = """add sub mul div maximum minimum fmax fmin fmod remainder floor_divide eq lt bitwise_and bitwise_or
bitwise_xor logical_and atan2 true_divide float_power""".split()
COMPLEX = """abs neg sgn exp log sqrt rsqrt reciprocal square sin cos tan sinh cosh tanh sigmoid conj real imag angle""".split()


def recorded():
    recorder = Recorder(INPUTS)
    case = recorder.case
    for name in UNARY:
        for given in ("edges", "edges32", "small", "large", "scalar", "empty"):
            case(name, given)
    for name in INTEGER_UNARY:
        for given in ("ints", "bytes") if name in NOT_OF_BOOLEANS else ("ints", "bytes", "bools"):
            case(name, given)
    for name in BINARY:
        for first, second in (("pairs", "others"), ("pairs32", "others32"), ("column", "row"), ("row", "scalar")):
            case(name, first, second, grads=name not in NOT_DIFFERENTIABLE)
        if name not in WITHOUT_SCALARS:
            case(name, "pairs", 2, grads=name not in NOT_DIFFERENTIABLE)
    for name in INTEGER_BINARY:
        case(name, "ints", "divisors")
        if "bitwise" not in name:
            case(name, "ints", "column", grads=name not in NOT_DIFFERENTIABLE)
    for exponent in (0, 1, 2, 3, 0.5, -1, 1.5, -2.5):
        case("pow", "sizes" if exponent == 0.5 else "edges", exponent)
        case("pow", "pairs32", exponent)
    for base in (0.0, 1.0, 2.0, 0.5, -1.5):
        case("pow", base, "edges")
    case("pow", "ints", 2)
    case("pow", 2, "bytes")
    for mode in ("floor", "trunc"):
        case("div", "pairs", "others", rounding_mode=mode)
        case("div", "ints", "divisors", rounding_mode=mode)
    case("add", "pairs", "others", alpha=0.5)
    case("sub", "ints", "divisors", alpha=3)
    case("rsub", "pairs", "others", alpha=2)
    for bounds in ({"min": -1.0}, {"max": 1.5}, {"min": -0.5, "max": 2.0}, {"min": 2.0, "max": 0.5}):
        case("clamp", "edges", **bounds)
        case("clamp", "ints", **bounds)
    case("clamp", "edges", "pairs", "others")
    case("clamp", "pairs", "others")
    case("clamp", "pairs", None, "others")
    case("clamp_min", "edges", 0.5)
    case("clamp_max", "pairs", "others")
    for weight in (0.0, 0.3, 0.5, 1.0, "weights"):
        case("lerp", "column", "row", weight)
    case("addcmul", "column", "row", "weights", value=0.5)
    case("addcdiv", "column", "weights", "row", value=-2.0)
    case("round", "edges", decimals=1)
    case("round", "large", decimals=-2)
    case("logit", "edges", eps=0.1)
    case("nan_to_num", "edges", nan=2.0, posinf=5.0, neginf=-7.0)
    # PyTorch's trigamma has nine digits, and is finite at the poles.
    case("digamma", "gammas", tolerance=1e-8)
    for order in (0, 1, 2, 4):
        case("polygamma", order, "gammas", tolerance=1e-8)
    case("heaviside", "pairs", "others", grads=False)
    case("bitwise_left_shift", "bytes", 2)
    case("bitwise_right_shift", "ints", 1)
    case("bitwise_not", "ints")
    case("bitwise_not", "bools")
    for options in ({}, {"equal_nan": True}, {"rtol": 0.5, "atol": 1.0}):
        case("isclose", "pairs", "others", grads=False, **options)
    for name in ("add", "mul", "logical_and", "logical_xor", "bitwise_or", "eq", "maximum", "div"):
        case(name, "bools", "others_bool")
    for name in COMPLEX:
        case(name, "angles")
        case(name, "turns")
        case(name, "turns64")
    for name in ("add", "sub", "mul", "div", "pow"):
        case(name, "turns", "angles")
        case(name, "turns", "reals")
        case(name, "reals", "turns")
        case(name, "turns", 2)
    case("pow", 2.5, "turns")
    case("complex", "reals", "reals")
    case("polar", "sizes", "reals")
    case("view_as_real", "turns")
    for name in ("sum", "prod", "cumsum", "cumprod", "mean", "norm", "var"):
        case(name, "turns", *([0] if name.startswith("cum") else []))
    case("matmul", "turns", "angles")
    return {"ops_elementwise": recorder.recorded()}
