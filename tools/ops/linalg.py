"""Checks of matrix products, contractions, decompositions and solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import core as tg
from ...core import Tensor
from ...testing.ops import Make, OpCheck, Samples
from .shaping import of

la = tg.linalg


def shapes(*pairs: tuple[tuple[int, ...], ...]) -> Samples:
    """Return samples of tensors, one argument for each shape."""
    return lambda make: [tuple(make(*shape, signs=True) for shape in each) for each in pairs]


PRODUCTS = shapes(
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 2, 3), (3, 2)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
)


def regular(*batches: tuple[int, ...]) -> Samples:
    """Return samples of one square matrix far from singular."""

    def samples(make: Make) -> list[tuple[Tensor]]:
        return [(Tensor(make(*shape).numpy(force=True) + 2 * np.eye(shape[-1]), True),) for shape in batches]

    return samples


SQUARE = regular((3, 3), (1, 1), (2, 2, 2), (0, 2, 2))


def systems(make: Make) -> list[tuple[Tensor, Tensor]]:
    """Return samples of matrices and right-hand sides."""
    matrices = [sample[0] for sample in regular((3, 3), (2, 2, 2), (2, 2))(make)]
    return list(zip(matrices, (make(3, 2), make(2, 2, 1), make(3, 2, 1))))


def positive(a: Tensor) -> Tensor:
    """Return a symmetric positive definite matrix."""
    return a @ a.mH + Tensor(np.eye(a.shape[-1], dtype=a.dtype))


def tall(make: Make) -> list[tuple[Tensor]]:
    """Return samples of a matrix of full rank with at most as many columns as rows."""
    return [(make.distinct(4, 2),), (make.distinct(2, 3, 3),), (make.distinct(3, 1),)]


def any_rank(make: Make) -> list[tuple[Tensor]]:
    """Return samples of a matrix of full rank and any shape."""
    return [*tall(make), (make.distinct(2, 4),), (make.distinct(2, 2, 3),)]


def scattered(make: Make) -> list[tuple[Tensor]]:
    """Return samples of a matrix of any shape with distinct sums of rows and columns."""
    return [(make(*shape, signs=True),) for shape in ((4, 2), (3, 3), (2, 2, 3), (1, 4))]


def of_eigh(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues, and a function of the eigenvectors that does not depend on their signs."""
    values, vectors = la.eigh(a + a.mH)
    return values, vectors * vectors * tg.arange(1.0, a.shape[-1] + 1, dtype="float64").to(a.dtype)


def of_svd(a: Tensor) -> tuple[Tensor, ...]:
    """Return the singular values, and functions of the singular vectors that do not depend on their signs."""
    u, s, vh = la.svd(a, full_matrices=False)
    return s, u * u, vh * vh, u[..., :, :1] * vh[..., :1, :]


def of_eig(a: Tensor) -> tuple[Tensor, ...]:
    """Return real functions of the eigenvalues and eigenvectors that do not depend on phases."""
    values, vectors = la.eig(a)
    return tg.real(values), tg.imag(values), tg.real(vectors * tg.conj(vectors))


def of_qr(a: Tensor, mode: Any = "reduced") -> tuple[Tensor, Tensor]:
    """Return both factors of the QR decomposition."""
    return tuple(la.qr(a, mode))  # type: ignore[return-value]


EINSUM: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((2, 3), (3, 2)),
    "ij,jk": ((2, 3), (3, 2)),
    "bij,bjk->bik": ((2, 2, 3), (2, 3, 1)),
    "ij,ij->": ((2, 3), (2, 3)),
    "i,j->ji": ((2,), (3,)),
    "ii->i": ((3, 3),),
    "iij,ik->jk": ((2, 2, 3), (2, 2)),
    "ij->": ((2, 3),),
    "ij->ji": ((2, 0),),
    "...ij,...jk->...ik": ((2, 1, 2, 2), (3, 2, 1)),
    "b...,b...->...b": ((2, 3), (2, 3)),
    "i...->...": ((2, 3),),
    "ij,k->i": ((2, 3), (2,)),
    "i,ij,j->": ((2,), (2, 3), (3,)),
    "ab,bc,cd,da->ac": ((2, 2), (2, 3), (3, 2), (2, 2)),
    "bhqd,bhkd->bhqk": ((2, 1, 2, 3), (2, 1, 3, 3)),
    ",i->i": ((), (3,)),
    "ij,jk->ki": ((2, 1), (3, 2)),
}


def einsum(equation: str) -> Callable[..., Tensor]:
    """Return ``einsum`` of ``equation`` as a function of the operands."""
    return lambda *operands: tg.einsum(equation, *operands)


def np_einsum(equation: str) -> Any:
    """Return NumPy's ``einsum`` of ``equation``; ``None`` where it would have to expand lengths of 1 without an ellipsis."""
    return None if equation == "ij,jk->ki" else lambda *operands: np.einsum(equation, *operands)


CHECKS = [
    OpCheck("matmul", tg.matmul, PRODUCTS, reference=np.matmul),
    OpCheck("mm", tg.mm, shapes(((2, 3), (3, 4)), ((0, 2), (2, 1))), reference=np.matmul),
    OpCheck("bmm", tg.bmm, shapes(((2, 2, 3), (2, 3, 1)), ((0, 1, 2), (0, 2, 1))), reference=np.matmul),
    OpCheck("mv", tg.mv, shapes(((2, 3), (3,)), ((2, 0), (0,))), reference=np.matmul),
    OpCheck("dot", tg.dot, shapes(((3,), (3,)), ((0,), (0,))), reference=np.dot),
    OpCheck("vdot", tg.vdot, shapes(((3,), (3,))), reference=np.vdot),
    OpCheck(
        "inner", tg.inner, shapes(((2, 3), (4, 3)), ((3,), (3,)), ((), (2,)), ((2, 1, 3), (3,))), reference=np.inner
    ),
    OpCheck("outer", tg.outer, shapes(((2,), (3,)), ((0,), (2,))), reference=np.outer),
    OpCheck("ger", tg.ger, shapes(((2,), (3,))), reference=np.outer),
    OpCheck("linear", tg.linear, shapes(((2, 3), (4, 3), (4,)), ((2, 2, 3), (1, 3)), ((3,), (2, 3), (2,)))),
    OpCheck(
        "addmm",
        lambda a, b, c: tg.addmm(a, b, c, beta=0.5, alpha=2),
        shapes(((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4)), ((), (1, 2), (2, 1))),
        reference=lambda a, b, c: 0.5 * a + 2 * b @ c,
    ),
    OpCheck("addmm_", lambda a, b, c: (a * 1.0).addmm_(b, c), shapes(((2, 4), (2, 3), (3, 4)))),
    OpCheck("baddbmm_", lambda a, b, c: (a * 1.0).baddbmm_(b, c), shapes(((2, 2, 1), (2, 2, 3), (2, 3, 1)))),
    OpCheck("addbmm_", lambda a, b, c: (a * 1.0).addbmm_(b, c), shapes(((2, 1), (2, 2, 3), (2, 3, 1)))),
    OpCheck("addmv_", lambda a, b, c: (a * 1.0).addmv_(b, c), shapes(((2,), (2, 3), (3,)))),
    OpCheck("addr_", lambda a, b, c: (a * 1.0).addr_(b, c), shapes(((2, 3), (2,), (3,)))),
    OpCheck("baddbmm", tg.baddbmm, shapes(((2, 2, 1), (2, 2, 3), (2, 3, 1)), ((1,), (2, 2, 3), (2, 3, 2)))),
    OpCheck("addbmm", tg.addbmm, shapes(((2, 1), (2, 2, 3), (2, 3, 1))), reference=lambda a, b, c: a + (b @ c).sum(0)),
    OpCheck("addmv", lambda *args: tg.addmv(*args, beta=2, alpha=3), shapes(((2,), (2, 3), (3,)))),
    OpCheck("addr", lambda *args: tg.addr(*args, beta=2, alpha=3), shapes(((2, 3), (2,), (3,)), ((3,), (2,), (3,)))),
    *(
        OpCheck(f"einsum:{equation}", einsum(equation), shapes(operands), reference=np_einsum(equation))
        for equation, operands in EINSUM.items()
    ),
    OpCheck("einsum:lists", lambda a, b: tg.einsum(a, [0, 1], b, [1, ...], [..., 0]), shapes(((2, 3), (3, 2)))),
    OpCheck("tensordot", tg.tensordot, shapes(((2, 3, 2), (3, 2, 1))), reference=np.tensordot),
    OpCheck("tensordot:dims", lambda a, b: tg.tensordot(a, b, ([0, -1], [1, 0])), shapes(((2, 3, 2), (2, 2, 1)))),
    OpCheck("kron", tg.kron, shapes(((2, 3), (1, 2)), ((2,), (2, 2)), ((), (2,)), ((2, 0), (1, 1))), reference=np.kron),
    OpCheck("chain_matmul", tg.chain_matmul, shapes(((2, 3), (3, 1), (1, 4), (4, 2)), ((2, 2),))),
    OpCheck("multi_dot", lambda *args: la.multi_dot(args), shapes(((3,), (3, 1), (1, 4), (4,)), ((2, 3), (3, 1)))),
    OpCheck("matrix_power", lambda a: tg.matrix_power(a, 5), SQUARE),
    OpCheck("matrix_power:negative", lambda a: tg.matrix_power(a, -2), SQUARE),
    OpCheck("matrix_power:0", lambda a: tg.matrix_power(a, 0) * a, SQUARE),
    OpCheck("matrix_exp", tg.matrix_exp, SQUARE),
    OpCheck("inv", la.inv, SQUARE, reference=np.linalg.inv),
    OpCheck("inverse", tg.inverse, SQUARE, reference=np.linalg.inv),
    OpCheck("inv_ex", lambda a: la.inv_ex(a).inverse, SQUARE),
    OpCheck("solve", la.solve, systems),
    OpCheck("solve:vector", la.solve, lambda make: [(a, make(*a.shape[:-1])) for a, _ in systems(make)[:2]]),
    OpCheck("solve:right", lambda a, b: la.solve(a, b.mT, left=False), systems),
    OpCheck("solve_ex", lambda a, b: la.solve_ex(a, b).result, systems),
    *(
        OpCheck(
            f"solve_triangular:{upper}{unit}",
            lambda a, b, upper=upper, unit=unit: la.solve_triangular(a, b, upper=upper, unitriangular=unit),
            systems,
        )
        for upper in (True, False)
        for unit in (True, False)
    ),
    OpCheck("solve_triangular:right", lambda a, b: la.solve_triangular(a, b.mT, upper=True, left=False), systems),
    OpCheck("triangular_solve", lambda a, b: tg.triangular_solve(b, a, transpose=True)[0], systems),
    OpCheck("cholesky", lambda a: la.cholesky(positive(a)), SQUARE),
    OpCheck("cholesky:upper", lambda a: positive(a).cholesky(True), SQUARE),
    OpCheck("cholesky_ex", lambda a: la.cholesky_ex(positive(a)).L, SQUARE),
    OpCheck("cholesky_solve", lambda a, b: tg.cholesky_solve(b, la.cholesky(positive(a))), systems),
    OpCheck("cholesky_inverse", lambda a: tg.cholesky_inverse(la.cholesky(positive(a), upper=True), True), SQUARE),
    OpCheck("pinv", la.pinv, any_rank, reference=np.linalg.pinv),
    OpCheck("pinverse", tg.pinverse, tall),
    OpCheck(
        "lstsq",
        lambda a, b: la.lstsq(a, b)[:2],
        lambda make: [(make.distinct(4, 2), make(4, 1)), (make.distinct(2, 3), make(2))],
    ),
    OpCheck("det", tg.det, SQUARE, reference=np.linalg.det),
    OpCheck("slogdet", lambda a: tg.slogdet(a).logabsdet, SQUARE, reference=lambda a: np.linalg.slogdet(a)[1]),
    OpCheck("logdet", lambda a: tg.logdet(positive(a)), SQUARE),
    OpCheck("linalg_qr", of_qr, scattered),
    OpCheck("qr", lambda a: tuple(tg.qr(a)), any_rank),
    OpCheck(
        "linalg_qr:complete",
        lambda a: of_qr(a, "complete"),
        lambda make: [(make.distinct(2, 3),), (make.distinct(3, 3),)],
    ),
    OpCheck("eigh", of_eigh, SQUARE),
    OpCheck("eigvalsh", lambda a: la.eigvalsh(a + a.mH), SQUARE),
    OpCheck("eig", of_eig, regular((3, 3), (2, 2, 2))),
    OpCheck("eigvals", lambda a: tg.real(la.eigvals(a)), regular((3, 3), (2, 2, 2))),
    OpCheck("linalg_svd", of_svd, any_rank),
    OpCheck("linalg_svd:full", lambda a: la.svd(a).S, any_rank),
    OpCheck("svd", lambda a: tg.svd(a).S, any_rank),
    OpCheck("svdvals", la.svdvals, any_rank),
    *(
        OpCheck(
            f"vector_norm:{order}", lambda a, order=order: la.vector_norm(a, order, -1), of((3,), (2, 3), (1, 2, 1))
        )
        for order in (2, 1, 3, 0.5, -1.5, float("inf"), float("-inf"))
    ),
    OpCheck("vector_norm", la.vector_norm, of((3,), (2, 3), (), (0, 2))),
    OpCheck("vector_norm:0", lambda a: la.vector_norm(a, 0), of((2, 3)), orders=0),
    *(
        OpCheck(f"matrix_norm:{order}", lambda a, order=order: la.matrix_norm(a, order), scattered)
        for order in ("fro", "nuc", 2, -2, 1, -1, float("inf"), float("-inf"))
    ),
    OpCheck("linalg_norm", la.norm, any_rank),
    OpCheck("linalg_norm:nuc", lambda a: la.norm(a, "nuc", (0, -1), True), tall),
    OpCheck("cond", la.cond, any_rank),
    OpCheck("cond:fro", lambda a: la.cond(a, "fro"), SQUARE),
    OpCheck("matrix_rank", la.matrix_rank, any_rank, orders=0, reference=np.linalg.matrix_rank),
    OpCheck("cross", tg.cross, shapes(((3,), (3,)), ((2, 3), (2, 3)), ((3, 2), (3, 1))), reference=None),
    OpCheck("linalg_cross", la.cross, shapes(((2, 3), (2, 3)), ((1, 3), (2, 3))), reference=np.cross),
    OpCheck("vecdot", la.vecdot, shapes(((3,), (3,)), ((2, 3), (3,)))),
    OpCheck("vander", lambda a: tg.vander(a, 3), of((2,), (3,)), reference=lambda a: np.vander(a, 3)),
    OpCheck("linalg_vander", la.vander, of((2,), (2, 3))),
    *(
        OpCheck(
            f"cdist:{p}",
            lambda a, b, p=p: tg.cdist(a, b, p),
            shapes(((2, 3), (4, 3)), ((2, 2, 1), (1, 1)), ((2, 3), (0, 3))),
        )
        for p in (2.0, 1.0, 3.0, float("inf"))
    ),
    *(
        OpCheck(f"pdist:{p}", lambda a, p=p: tg.pdist(a, p), of((3, 2), (1, 2), (0, 2), (4, 1)))
        for p in (2.0, 1.0, 3.0)
    ),
    OpCheck("cdist", lambda a, b: tg.cdist(a, b, compute_mode="use_mm_for_euclid_dist"), shapes(((2, 3), (4, 3)))),
    OpCheck("tensorinv", lambda a: la.tensorinv(a.reshape(1, 3, 3), 2), regular((3, 3))),
    OpCheck("tensorsolve", lambda a: la.tensorsolve(a.reshape(2, 2, 2, 2), a[:2, :2]), regular((4, 4))),
]
