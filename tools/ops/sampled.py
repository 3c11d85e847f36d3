"""Checks of sampled functions, parts of numbers, ``special``, and operations that write through views."""

from __future__ import annotations

import numpy as np

from ... import core as tg
from ...testing.ops import SHAPES, Make, OpCheck, binary, unary
from .elementwise import SIGNED, integers
from .linalg import shapes
from .shaping import of

INEXACT = ("float16", "float32", "float64")
INSIDE = unary(0.1, 0.8)
LINES = of((4,), (2, 3), (3, 1), (2, 0, 3))


def rows(make: Make) -> list[tuple[tg.Tensor, tg.Tensor, tg.Tensor]]:
    """Return samples of a tensor, indices of its rows, and rows to combine with them."""
    cases = (((3, 2), 4), ((4,), 2), ((2, 2, 3), 0))
    return [(make.distinct(*s), make.integers(n, high=s[0]), make.distinct(n, *s[1:]) + 0.03) for s, n in cases]


def numbered(make: Make) -> list[tuple[tg.Tensor]]:
    """Return samples of a tensor of indices into the flattened elements of a (3, 4) tensor."""
    return [(make.integers(*shape, high=12),) for shape in SHAPES]


CHECKS = [
    OpCheck("trapezoid", tg.trapezoid, LINES, reference=lambda a: (a[..., 1:] + a[..., :-1]).sum(-1) / 2),
    OpCheck(
        "trapezoid:x", lambda y, x: tg.trapezoid(y, x, dim=0), shapes(((3, 2), (3,)), ((4,), (4,)), ((2, 2), (2, 2)))
    ),
    OpCheck("cumulative_trapezoid", tg.cumulative_trapezoid, LINES),
    OpCheck("gradient", lambda a: tg.gradient(a), of((4,), (2, 3), (3, 2, 2)), dtypes=INEXACT),
    OpCheck(
        "gradient:edges", lambda a: tg.gradient(a, spacing=0.5, dim=0, edge_order=2), of((4,), (3, 2)), dtypes=INEXACT
    ),
    OpCheck("gcd", tg.gcd, integers, orders=0, reference=np.gcd),
    OpCheck("lcm", tg.lcm, integers, orders=0, reference=np.lcm),
    OpCheck("nextafter", tg.nextafter, binary(), orders=0, reference=np.nextafter, dtypes=("float64",)),
    OpCheck("frexp", lambda a: tg.frexp(a).mantissa, SIGNED, reference=lambda a: np.frexp(a)[0], dtypes=INEXACT),
    OpCheck("ldexp", tg.ldexp, binary(), reference=lambda a, b: a * 2**b),
    OpCheck("select_scatter", lambda a, b: tg.select_scatter(a, b, 1, -1), shapes(((2, 3), (2,)), ((0, 1), (0,)))),
    OpCheck(
        "slice_scatter",
        lambda a, b: tg.slice_scatter(a, b, 0, 1, None, 2),
        shapes(((4, 2), (2, 2)), ((3,), (1,)), ((1, 2), (0, 2))),
    ),
    *(
        OpCheck(
            f"index_reduce:{kind}", lambda a, i, b, kind=kind: tg.index_reduce(a, 0, i, b, kind), rows, dtypes=INEXACT
        )
        for kind in ("prod", "mean", "amax", "amin")
    ),
    OpCheck("index_reduce_", lambda a, i, b: (a * 1.0).index_reduce_(0, i, b, "mean"), rows, dtypes=INEXACT),
    OpCheck("renorm", lambda a: tg.renorm(a, 2, 0, 1.0), of((2, 3), (3, 2, 2), (0, 2)), dtypes=INEXACT),
    OpCheck("renorm_", lambda a: (a * 1.0).renorm_(2, 0, 1.0), of((2, 3)), dtypes=INEXACT),
    OpCheck(
        "histogramdd", lambda a: tg.histogramdd(a, [3, 2]), of((5, 2), (2, 3, 2), (0, 2)), orders=0, dtypes=("float64",)
    ),
    OpCheck("histogram", lambda a: tg.histogram(a, 3), of((5,), (2, 3), (0,)), orders=0, dtypes=("float64",)),
    OpCheck(
        "unravel_index",
        lambda a: tg.unravel_index(a, (3, 4)),
        numbered,
        orders=0,
        reference=lambda a: np.unravel_index(a, (3, 4)),
    ),
    OpCheck("mvlgamma", lambda a: tg.mvlgamma(a, 2), unary(1.0, 5.0)),
    OpCheck("mvlgamma_", lambda a: a.clone().mvlgamma_(2), unary(1.0, 5.0)),
    OpCheck("entr", tg.special.entr, INSIDE, reference=lambda a: -a * np.log(a)),
    OpCheck("ndtr", tg.special.ndtr, SIGNED),
    OpCheck("ndtri", tg.special.ndtri, INSIDE),
    OpCheck("xlog1py", tg.special.xlog1py, binary(), reference=lambda a, b: a * np.log1p(b)),
]
