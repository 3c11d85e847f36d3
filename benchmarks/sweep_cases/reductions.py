"""Reductions, scans and sorting along the rows of a 256 x 256 matrix."""

from __future__ import annotations

from .base import by_name, case, cases, normal

MATRIX = normal(256, 256)

CASES = (
    *cases((MATRIX,), by_name("sum mean var std max min median prod argmax any all count_nonzero")),
    *cases(
        (MATRIX,),
        {
            "sum over rows": lambda lib, x: x.sum(0),
            "sum over columns": lambda lib, x: x.sum(1),
            "mean over rows": lambda lib, x: x.mean(0),
            "var over columns": lambda lib, x: x.var(1),
            "amax over columns": lambda lib, x: x.amax(1),
            "max over columns": lambda lib, x: x.max(1),
            "argmin over columns": lambda lib, x: x.argmin(1),
            "prod over columns": lambda lib, x: x.prod(1),
            "logsumexp": lambda lib, x: lib.logsumexp(x, 1),
            "norm": lambda lib, x: lib.linalg.norm(x),
            "norm over columns": lambda lib, x: lib.linalg.vector_norm(x, dim=1),
            "softmax": lambda lib, x: lib.softmax(x, 1),
            "log_softmax": lambda lib, x: lib.log_softmax(x, 1),
            "cumsum": lambda lib, x: x.cumsum(1),
            "cumprod": lambda lib, x: x.cumprod(1),
            "cummax": lambda lib, x: x.cummax(1),
            "logcumsumexp": lambda lib, x: x.logcumsumexp(1),
            "sort": lambda lib, x: x.sort(1),
            "argsort": lambda lib, x: x.argsort(1),
            "topk": lambda lib, x: x.topk(8, 1),
            "unique": lambda lib, x: lib.unique(x.detach()),
            "diff": lambda lib, x: lib.diff(x, dim=1),
        },
    ),
    case("cdist", lambda lib, x, y: lib.cdist(x, y), normal(64, 32), normal(64, 32)),
)
