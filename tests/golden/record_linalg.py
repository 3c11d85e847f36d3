"""Records linear algebra, for tests/core/test_expressions_golden.py.

python tests/golden/record_linalg.py
"""

from expressions import case, record

S, B = (3, 3), (2, 3, 3)
SPD = "(x @ x.mT + tg.eye(3, dtype=tg.float64))"
PAIRS = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (3, 3, 2)),
         ((3,), (2, 3, 2)), ((2, 2, 3), (3,))]  # fmt: skip

CASES = [
    *(case("tg.matmul(x, y)", *shapes) for shapes in PAIRS),
    case("tg.mm(x, y)", (2, 3), (3, 2)),
    case("tg.bmm(x, y)", (2, 2, 3), (2, 3, 1)),
    case("tg.mv(x, y)", (2, 3), (3,)),
    case("tg.dot(x, y)", (3,), (3,)),
    case("tg.vdot(x, y)", (3,), (3,)),
    case("tg.inner(x, y)", (2, 3), (4, 3)),
    case("tg.outer(x, y)", (2,), (3,)),
    case("tg.ger(x, y)", (2,), (3,)),
    case("tg.addmm(x, y, z, beta=0.5, alpha=2)", (4,), (2, 3), (3, 4)),
    case("tg.addmv(x, y, z)", (2,), (2, 3), (3,)),
    case("tg.addbmm(x, y, z, beta=2)", (2, 2), (3, 2, 3), (3, 3, 2)),
    case("tg.baddbmm(x, y, z, alpha=3)", (2, 2, 2), (2, 2, 3), (2, 3, 2)),
    case("tg.addr(x, y, z)", (2, 3), (2,), (3,)),
    case("tg.chain_matmul(x, y, z)", (2, 4), (4, 1), (1, 3)),
    case("tg.linalg.multi_dot([x, y, z])", (4,), (4, 2), (2,)),
    *(
        case(f"tg.einsum('{equation}', {', '.join('xyz'[: len(shapes)])})", *shapes)
        for equation, shapes in {
            "ij,jk->ik": ((2, 3), (3, 2)),
            "ij,jk": ((2, 3), (3, 2)),
            "bij,bjk->bik": ((2, 2, 3), (2, 3, 1)),
            "ii": (S,),
            "ii->i": (S,),
            "ij->j": ((2, 3),),
            "i,j,k->kji": ((2,), (3,), (2,)),
            "...ij,...jk": ((2, 1, 2, 2), (3, 2, 1)),
            "iij,jk->ik": ((2, 2, 3), (3, 2)),
            "ab,bc,ca->": ((2, 3), (3, 2), (2, 2)),
            "b n h, b m h -> b n m": ((2, 2, 3), (2, 2, 3)),
            "zA,Ab": ((2, 3), (3, 2)),
        }.items()
    ),
    case("tg.einsum(x, [0, 1], y, [1, 2], [2, 0])", (2, 3), (3, 2)),
    case("tg.einsum(x, [..., 0], y, [..., 0], [...])", (2, 3), (1, 3)),
    case("tg.tensordot(x, y, 1)", (2, 3), (3, 4)),
    case("tg.tensordot(x, y, ([0, 2], [1, 0]))", (2, 3, 4), (4, 2)),
    case("tg.kron(x, y)", (2, 2), (2, 3)),
    case("tg.linalg.cross(x, y)", (2, 3), (1, 3)),
    case("tg.linalg.vecdot(x, y)", (2, 3), (2, 3)),
    case("tg.linalg.vander(x)", (2, 3)),
    case("tg.vander(x.detach(), 4)", (3,)),
    *(case(f"tg.linalg.matrix_power(x, {n})", S) for n in (3, 0, -2)),
    case("tg.linalg.matrix_exp(x)", B),
    case("tg.linalg.matrix_exp(x * 20)", (2, 2)),
    case("tg.linalg.inv(x)", B),
    case("tg.linalg.pinv(x)", (3, 2)),
    case("tg.linalg.pinv(x)", (2, 4)),
    case("tg.linalg.solve(x, y)", S, (3, 2)),
    case("tg.linalg.solve(x, y)", B, (2, 3)),
    case("tg.linalg.solve(x, y, left=False)", S, (2, 3)),
    *(
        case(f"tg.linalg.solve_triangular(x, y, upper={upper}, unitriangular={unit})", S, (3, 2), positive=True)
        for upper in (True, False)
        for unit in (True, False)
    ),
    case("tg.linalg.solve_triangular(x, y, upper=True, left=False)", S, (2, 3), positive=True),
    case(f"tg.linalg.cholesky({SPD})", B),
    case(f"tg.linalg.cholesky({SPD}, upper=True)", B),
    case(f"tg.cholesky_solve(y, tg.linalg.cholesky({SPD}))", S, (3, 2)),
    case(f"tg.cholesky_inverse(tg.linalg.cholesky({SPD}))", S),
    case("tg.linalg.qr(x)[1].abs()", (4, 3)),
    case("tg.linalg.qr(x)[0].abs()", (4, 3)),
    case("tg.linalg.qr(x)[0].abs()", (2, 4)),
    case("tg.linalg.qr(x)[1].abs()", (2, 4)),
    case("tg.linalg.svdvals(x)", (2, 3, 4)),
    case("(lambda s: [s[1], s[0].abs(), s[2].abs()])(tg.linalg.svd(x, full_matrices=False))", (4, 2)),
    case("(lambda s: [s[1], s[0].abs(), s[2].abs()])(tg.linalg.svd(x, full_matrices=False))", (2, 4)),
    case("tg.linalg.eigvalsh(x + x.mT)", B),
    case("(lambda e: [e[0], e[1].abs()])(tg.linalg.eigh(x + x.mT))", B),
    case("(lambda e: tg.stack([tg.real((e ** 2).sum()), tg.real((e ** 3).sum())]))(tg.linalg.eigvals(x))", S),
    case("tg.linalg.det(x)", B),
    case("tg.det(x * tg.tensor([1.0, 0.0, 1.0], dtype=tg.float64))", S),
    case("tg.linalg.slogdet(x)[1]", B),
    case(f"tg.logdet({SPD})", S),
    *(case(f"tg.linalg.vector_norm(x, {order}, dim=1)", (2, 3)) for order in (2, 1, 3, 0.5, "inf", "-inf", 0)),
    case("tg.linalg.vector_norm(x, keepdim=True)", (2, 3)),
    case("tg.linalg.vector_norm(x * 0)", (3,)),
    *(case(f"tg.linalg.matrix_norm(x, {order!r})", (2, 3, 4)) for order in ("fro", "nuc", 2, -2, 1, -1)),
    *(case(f"tg.linalg.matrix_norm(x, {order}, dim=(0, 2), keepdim=True)", (2, 3, 4)) for order in ("inf", "-inf")),
    case("tg.linalg.norm(x)", (2, 3, 4)),
    case("tg.linalg.norm(x, 2)", (2, 3)),
    case("tg.linalg.norm(x, inf, dim=-1)", (2, 3)),
    case("tg.linalg.cond(x)", S),
    case("tg.linalg.cond(x.detach(), 'fro')", S),
    case("tg.linalg.matrix_rank(x)", (2, 4)),
    case("tg.linalg.lstsq(x, y)[0]", (4, 2), (4, 1)),
    case("tg.linalg.lstsq(x, y)[0]", (4, 4), (4, 2)),
    *(case(f"tg.cdist(x, y, {p})", (3, 2), (2, 2)) for p in (2.0, 1.0, 3.0, "inf")),
    case("tg.linalg.tensorinv(x.reshape(1, 3, 3))", S),
    case("tg.linalg.tensorsolve(x.reshape(2, 2, 2, 2), y)", (4, 4), (2, 2)),
    case("tg.linalg.inv_ex(x).inverse", B),
    case("tg.linalg.solve_ex(x, y).result", B, (2, 3, 2)),
    case(f"tg.linalg.cholesky_ex({SPD}).L", S),
    *(case("list(tg.linalg.lu(x))[1:]", shape) for shape in ((4, 2), (2, 4), B)),
    case("tg.linalg.lu_factor(x).LU", B),
    case("tg.linalg.lu_factor(x.detach()).pivots", (2, 6, 4)),
    case("tg.linalg.lu_factor_ex(x * tg.tensor([1.0, 0.0, 1.0], dtype=tg.float64)).info", S),
    case("list(tg.lu_unpack(*tg.linalg.lu_factor(x)))", S),
    *(case(f"tg.linalg.lu_solve(*tg.linalg.lu_factor(x), y, adjoint={flag})", B, (2, 3, 2)) for flag in (True, False)),
    case("tg.linalg.lu_solve(*tg.linalg.lu_factor(x), y, left=False)", B, (2, 2, 3)),
    case("tg.lu_solve(y, *tg.linalg.lu_factor(x))", S, (3, 2)),
    case("tg.linalg.householder_product(x, y)", (2, 4, 3), (2, 2)),
    case("tg.orgqr(x, y)", (3, 3), (3,)),
    *(case(f"tg.ormqr(x, y, z, {how})", (3, 2), (2,), S) for how in ("True", "True, True", "False", "False, True")),
    case("list(tg.geqrf(x.detach()))", (2, 4, 3)),
    case("list(tg.linalg.ldl_factor((x + x.mT).detach()))", (6, 6)),
    case("list(tg.linalg.ldl_factor_ex((x + x.mT).detach()))", (2, 5, 5)),
    case("tg.linalg.ldl_solve(*tg.linalg.ldl_factor((x + x.mT).detach()), y.detach())", (5, 5), (5, 2)),
    # What does not depend on the phases of the vectors.
    case("tg.linalg.eig(x).eigenvalues", S),
    case("(tg.linalg.eig(x).eigenvectors.abs() ** 2 * tg.arange(1.0, 4.0, dtype=tg.float64)).sum(0)", S),
]

if __name__ == "__main__":
    record("linalg", CASES)
