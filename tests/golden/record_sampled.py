"""Records sampled functions, parts of numbers, ``special`` and writes through views, for core/test_expressions_golden.py."""

from expressions import case, record

M, V = (3, 4), (5,)
ROWS = "i([2, 0, 0])"
CASES = [
    case("tg.trapezoid(x)", M),
    case("tg.trapezoid(x, y, dim=0)", M, (3,)),
    case("tg.trapezoid(x, dx=0.5, dim=0)", M),
    case("tg.trapz(x, y)", M, M),
    case("tg.trapezoid(x)", (1,)),
    case("tg.cumulative_trapezoid(x)", M),
    case("tg.cumulative_trapezoid(x, y, dim=0)", M, (3,)),
    case("tg.gradient(x)", V),
    case("tg.gradient(x, edge_order=2)", M),
    case("tg.gradient(x, spacing=0.5, dim=1)", M),
    case("tg.gradient(x, spacing=[2.0, 0.25], edge_order=2)", M),
    case("tg.gradient(x, spacing=(tg.tensor([0.0, 1.0, 3.0, 3.5], dtype=tg.float64),), dim=1)", M),
    case("tg.gradient(x, spacing=(tg.tensor([0.0, 1.0, 3.0, 3.5], dtype=tg.float64),), dim=1, edge_order=2)", M),
    case("tg.gradient(x)", (2, 2)),
    case("tg.frexp(x)[0]", M),
    case("tg.frexp(x)[1] * 1.0", M),
    case("tg.ldexp(x, i([3, 0, 2, 1]))", M),  # PyTorch loses the gradients of negative whole exponents
    case("tg.ldexp(x, y)", M, (4,)),
    case("tg.nextafter(x.detach(), y.detach())", M, (4,)),
    case("tg.gcd(i([12, -18, 0, 7]), i([18, 12, 0, 21])) * 1.0"),
    case("tg.lcm(i([12, -18, 0, 7]), i([18, 12, 3, 21])) * 1.0"),
    case("tg.select_scatter(x, y, 1, -1)", M, (3,)),
    case("tg.slice_scatter(x, y, 1, 1, None, 2)", M, (3, 2)),
    case("tg.slice_scatter(x, y, 0, -2)", M, (2, 4)),
    *(case(f"tg.index_reduce(x, 0, {ROWS}, y, {kind!r})", M, M) for kind in ("prod", "mean", "amax", "amin")),
    case(f"tg.index_reduce(x, 0, {ROWS}, y, 'mean', include_self=False)", M, M),
    case(f"tg.index_reduce(x, 1, {ROWS}, y, 'prod', include_self=False)", M, (3, 3)),
    case("tg.renorm(x, 2, 0, 1.0)", M),
    case("tg.renorm(x, 1, -1, 2.0)", M),
    case("tg.histogram(x.detach(), 4)", M),
    case("tg.histogram(x.detach(), 3, range=(-1.0, 1.0), density=True)", M),
    case("tg.histogram(x.detach(), tg.tensor([-1.0, 0.0, 0.5], dtype=tg.float64), weight=y.detach())", M, M),
    case("[each * 1.0 for each in tg.unravel_index(i([0, 7, 11]), (3, 4))]"),
    case("x.where(y > 0, 2.0)", M, M),
    case("x.where(y > 0, z)", M, M, (4,)),
    case("x.sum_to_size(1, 4)", M),
    case("x.sum_to_size(4)", (2, 3, 4)),
    case("(x * 1.0).fill_diagonal_(2.5)", M),
    case("(x * 1.0).fill_diagonal_(2.5, wrap=True)", (7, 3)),
    case("(x * 1.0).fill_diagonal_(2.5)", (2, 2, 2)),
    case("tg.fill(x, 1.5)", M),
    case("tg.mvlgamma(x + 3.0, 3)", M, positive=True),
    case("tg.special.entr(x)", M, positive=True),
    case("tg.special.entr(tg.tensor([0.0, -1.0, inf], dtype=tg.float64))"),
    case("tg.special.ndtr(x)", M),
    case("tg.special.ndtri(x.sigmoid())", M),
    case("tg.special.xlog1py(x, y)", M, M, positive=True),
    case("tg.special.xlog1py(x, 0.5)", M),
    case("tg.special.xlog1py(x * 0, y * 0 - 1)", M, M),
    case("tg.special.expit(x) + tg.special.psi(y.detach()) + tg.special.gammaln(y)", M, M, positive=True),
    case("tg.special.multigammaln(x + 1.0, 2)", M, positive=True),
    *(
        case(f"tg.{name}_window({n}, {periodic}, dtype=tg.float64)")
        for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")
        for n, periodic in ((1, True), (5, True), (6, False))
    ),
    case("tg.hamming_window(5, True, 0.6, 0.4, dtype=tg.float64)"),
    case("tg.kaiser_window(5, True, 6.0, dtype=tg.float64)"),
    case("tg.qr(x)[1].abs()", (4, 3)),
    case("tg.pdist(x, 1.5)", M),
    case("tg.pow(x, exponent=3)", M),
    case("tg.heaviside(x.detach(), values=y.detach())", M, M),
]


def recorded():
    return {"sampled": record(CASES)}
