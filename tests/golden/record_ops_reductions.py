"""Records values and gradients of reductions, sorting and counting, for tests/core/test_ops_golden.py."""

from operations import Recorder

inf, nan = float("inf"), float("nan")
INPUTS = {
    "plain": ("float64", [[1.5, -2.0, 0.25, 3.0], [-0.5, 4.0, 2.5, -1.25], [0.75, 1.0, -3.5, 2.25]]),
    "plain32": ("float32", [[1.5, -2.0, 0.25, 3.0], [-0.5, 4.0, 2.5, -1.25], [0.75, 1.0, -3.5, 2.25]]),
    "zeros": ("float64", [[1.5, 0.0, 2.0, 3.0], [0.0, 4.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]),
    "ties": ("float64", [[1.0, 3.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0], [-1.0, -1.0, 0.0, 0.0]]),
    "holes": ("float64", [[1.0, nan, 3.0, 2.0], [nan, nan, 2.0, -2.0], [nan, nan, nan, nan]]),
    "wild": ("float64", [[1.0, inf, 3.0, -inf], [inf, inf, 2.0, -2.0], [-inf, -inf, -inf, -inf]]),
    "cube": ("float64", [[[1.0, -2.0], [3.0, 0.5]], [[2.5, -1.0], [0.0, 4.0]], [[-3.0, 1.0], [2.0, 2.0]]]),
    "ints": ("int64", [[3, -1, 3, 0], [2, 2, -5, 7], [0, 0, 0, 4]]),
    "bytes": ("uint8", [[3, 1, 200, 255], [0, 2, 2, 2]]),
    "int8": ("int8", [100, 100, -3]),
    "bools": ("bool", [[True, False, True], [False, False, False]]),
    "empty": ("float64", []),
    "hollow": ("float64", [[], []]),
    "scalar": ("float64", 2.5),
    "vector": ("float64", [3.0, 1.0, 2.0, 2.0, 5.0, -1.0, 2.0]),
    "far": ("float64", [[-800.0, 2.0, 700.0, 3.0], [-inf, -inf, 1.0, 2.0], [500.0, -900.0, 0.0, 1.0]]),
    "distant": ("float64", [[-800.0, 2.0, 700.0, 3.0], [500.0, -900.0, 0.0, 1.0]]),
    "gaps": ("float64", [[1.0, nan, 3.0, 2.0], [nan, nan, 2.0, -2.0], [4.0, 1.0, 7.0, nan]]),
    "q": ("float64", [0.0, 0.3, 0.5, 1.0]),
    "counts": ("int64", [1, 3, 0, 3, 3, 1]),
    "parts": ("float64", [0.5, 1.0, 2.0, -1.0, 0.25, 4.0]),
    "bounds": ("float64", [-1.0, 1.0, 2.0, 4.0]),
    "lines": ("float64", [[-2.0, 0.0, 1.0], [1.0, 2.0, 3.0], [-1.0, 0.0, 9.0]]),
    "often": ("int64", [1, 2, 1, 3]),
    "shares": ("float64", [0.5, 1.0, 2.0, 0.25]),
    "rows": ("int64", [[1, 2], [1, 2], [0, 5], [1, 2]]),
}
FULL = "plain plain32 zeros ties holes wild cube scalar".split()


def recorded():
    recorder = Recorder(INPUTS)
    case = recorder.case
    for (
        name
    ) in "sum nansum mean nanmean prod var std norm amax amin max min median nanmedian argmax argmin all any".split():
        for given in FULL:
            case(name, given)
        # PyTorch has nan gradients of a nanmean of nothing, and any place of one of several nans.
        for given in ("plain", "cube", "zeros", "ties", "gaps" if name.startswith("nan") else "holes"):
            case(name, given, dim=0)
            case(name, given, dim=-1, keepdim=True)
    for name in "sum nansum prod amax amin max min argmax argmin all any count_nonzero median".split():
        for given in ("ints", "bytes", "bools") if name not in ("median", "argmax", "argmin") else ("ints", "bytes"):
            case(name, given)
            case(name, given, dim=1)
    for name in "mean var std norm".split():
        case(name, "ints")
    for name in "sum mean prod var norm amax max argmax median all any logsumexp".split():
        case(name, "empty", *([0] if name == "logsumexp" else []))
        case(name, "hollow", 1)
        case(name, "hollow", 0)
    for name in ("sum", "mean", "amax", "var", "std", "nansum", "all", "any", "logsumexp", "count_nonzero"):
        case(name, "cube", (0, 2))
        if name != "count_nonzero":
            case(name, "cube", (0, -1), True) if name not in ("var", "std") else case(
                name, "cube", (0, -1), keepdim=True
            )
    case("sum", "int8")
    case("prod", "int8")
    for name in ("var", "std", "var_mean", "std_mean"):
        case(name, "plain", False)
        case(name, "plain", 1, False)
        case(name, "plain", 1, True, True)
        case(name, "plain", 0, correction=2)
        case(name, "plain", dim=None, correction=0, keepdim=True)
        case(name, "scalar")
        case(name, "vector", correction=9)
    for p in (0, 1, 2, 3, 0.5, 1.5, -1, -2, inf, -inf, "fro"):
        case("norm", "plain", p)
        if p not in (-1, -2):
            case("norm", "zeros", p)
        case("norm", "ties", p, 1)
        if p != "fro":
            case("norm", "cube", p, (0, 2), True)
        else:
            case("norm", "cube", p, (0, 2))
        if p not in ("fro", 0):
            case("dist", "plain", "ties", p)
    case("norm", "wild", inf)
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        for given in ("plain", "zeros", "ties", "holes", "cube", "scalar", "empty", "hollow"):
            case(name, given, 0)
            if given not in ("scalar", "empty"):
                case(name, given, -1)
    case("logcumsumexp", "distant", 1)
    for name in ("cumsum", "cumprod", "cummax"):
        case(name, "ints", 1)
        if name != "cummax":
            case(name, "bools", 1)
    for options in ({}, {"n": 2}, {"dim": 0}, {"n": 5}, {"prepend": "column"}):
        if "prepend" not in options:
            case("diff", "plain", **options)
    case("diff", "vector", prepend="q", append="parts")
    case("diff", "bools")
    for given in ("plain", "holes", "cube", "vector", "scalar", "plain32", "wild"):
        if given != "holes":
            case("sort", given, stable=True)
        else:
            case("msort", given)
        if given not in ("holes", "wild"):
            case("sort", given, dim=0, descending=True, stable=True)
        case("argsort", given, stable=True)
        case("aminmax", given)
    case("sort", "ints", stable=True, descending=True)
    case("argsort", "ties", descending=True, stable=True)
    for given in ("plain", "cube", "vector"):
        case("topk", given, 2)
        case("topk", given, 2, dim=0, largest=False)
    for given, k in (("plain", 2), ("plain32", 4), ("cube", 1)):
        case("kthvalue", given, k)
        case("kthvalue", given, k if k < 3 else 3, 0, True)
    case("kthvalue", "plain", 9)
    case("topk", "plain", 9)
    for given in ("plain", "ties", "ints", "zeros"):
        case("mode", given)
        case("mode", given, 0, True)
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        for q in (0.0, 0.3, 0.5, 1.0, "q"):
            case("quantile", "plain", q, interpolation=how)
            case("quantile", "cube", q, 1, True, interpolation=how)
    case("quantile", "cube", "q", 0)
    case("quantile", "cube", 0.25, 2)
    case("quantile", "holes", 0.4, 1)
    case("nanquantile", "holes", 0.4, 1)
    case("nanquantile", "gaps", "q", 0)
    for given in ("plain", "wild", "far", "cube", "holes", "plain32"):
        for name in ("softmax", "log_softmax", "logsumexp"):
            case(name, given, 0)
            case(name, given, -1)
    case("softmax", "scalar", 0)
    case("softmax", "hollow", 1)
    case("unique", "ints")
    case("unique", "vector", grads=False, return_inverse=True, return_counts=True)
    case("unique", "rows", dim=0, return_inverse=True, return_counts=True)
    case("unique_consecutive", "vector", grads=False, return_inverse=True, return_counts=True)
    case("unique_consecutive", "rows", dim=0, return_counts=True, return_inverse=True)
    case("unique_consecutive", "bools")
    case("bincount", "counts")
    case("bincount", "counts", minlength=7)
    case("bincount", "counts", "parts", grads=False)
    case("histc", "plain", 4, grads=False)
    case("histc", "plain", 5, -1, 2, grads=False)
    for right in (False, True):
        case("searchsorted", "bounds", "plain", right=right, grads=False)
        case("searchsorted", "lines", "plain", right=right, grads=False)
        case("bucketize", "plain", "bounds", right=right, grads=False)
    case("searchsorted", "bounds", 1.0, side="right", grads=False)
    case("isin", "ints", "counts")
    case("isin", "ints", "often", invert=True)
    case("cov", "plain")
    case("cov", "vector")
    case("cov", "plain", correction=0)
    case("cov", "plain", fweights="often")
    case("cov", "plain", aweights="shares")
    case("cov", "plain", fweights="often", aweights="shares", correction=2)
    case("corrcoef", "plain")
    case("corrcoef", "vector")
    for name in ("sum", "argmax", "cumsum", "sort", "softmax"):
        case(name, "plain", 5)
    return {"ops_reductions": recorder.recorded()}
