"""Products of matrices, decompositions and Fourier transforms."""

from __future__ import annotations

from typing import Any

from .base import case, cases, normal

SIDE = 128


def positive(lib: Any, x: Any) -> Any:
    """Return a positive definite matrix."""
    return x @ x.mT + SIDE * lib.eye(SIDE)


CASES = (
    *cases(
        (normal(SIDE, SIDE), normal(SIDE, SIDE)),
        {
            "mm": lambda lib, x, y: x @ y,
            "mm, transposed": lambda lib, x, y: x.t() @ y,
            "linalg.solve": lambda lib, x, y: lib.linalg.solve(x + SIDE * lib.eye(SIDE), y),
            "einsum ij,kj->ik": lambda lib, x, y: lib.einsum("ij,kj->ik", x, y),
            "kron": lambda lib, x, y: lib.kron(x[:16, :16], y[:16, :16]),
            "outer": lambda lib, x, y: lib.outer(x[0], y[0]),
            "dot": lambda lib, x, y: lib.dot(x[0], y[0]),
            "mv": lambda lib, x, y: lib.mv(x, y[0]),
        },
    ),
    *cases(
        (normal(SIDE, SIDE),),
        {
            "linalg.inv": lambda lib, x: lib.linalg.inv(x + SIDE * lib.eye(SIDE)),
            "linalg.slogdet": lambda lib, x: lib.linalg.slogdet(x + SIDE * lib.eye(SIDE))[1],
            "linalg.cholesky": lambda lib, x: lib.linalg.cholesky(positive(lib, x)),
            "linalg.qr": lambda lib, x: lib.linalg.qr(x),
            "linalg.svd": lambda lib, x: lib.linalg.svd(x)[1],
            "linalg.eigh": lambda lib, x: lib.linalg.eigh(x + x.mT),
            "matrix_exp": lambda lib, x: lib.linalg.matrix_exp(x / SIDE),
            "fft.rfft": lambda lib, x: lib.fft.rfft(x).abs(),
            "fft.fft2": lambda lib, x: lib.fft.fft2(x).abs(),
        },
    ),
    *cases(
        (normal(32, 32, 32), normal(32, 32, 32)),
        {
            "bmm": lambda lib, x, y: lib.bmm(x, y),
            "einsum bij,bkj->bik": lambda lib, x, y: lib.einsum("bij,bkj->bik", x, y),
            "linalg.solve, batch": lambda lib, x, y: lib.linalg.solve(x + 32 * lib.eye(32), y),
        },
    ),
    case("addmm", lambda lib, x, y, z: lib.addmm(x, y, z), normal(SIDE), normal(SIDE, SIDE), normal(SIDE, SIDE)),
    case("baddbmm", lambda lib, x, y: lib.baddbmm(x, x, y), normal(16, 32, 32), normal(16, 32, 32)),
)
