"""LU, LDL and Householder factors: they multiply to the matrix, and errors. tools/ops/factors.py checks gradients."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import linalg

SHAPES = [(1, 1), (5, 5), (40, 40), (37, 20), (20, 37), (9, 100), (2, 3, 17, 17), (0, 3, 3), (3, 0), (0, 0)]
DTYPES = [tg.float64, tg.complex128]


def matrix(*shape, dtype=tg.float64):
    random = np.random.default_rng(sum(shape))
    values = random.normal(size=shape) + (1j * random.normal(size=shape) if dtype == tg.complex128 else 0)
    return tg.tensor(values, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lu(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    p, lower, upper = linalg.lu(a)
    assert tg.allclose(p @ lower @ upper, a)
    assert tg.equal(lower, lower.tril()) and tg.equal(upper, upper.triu())
    assert not lower.numel() or lower.abs().max().item() <= (1 if dtype == tg.float64 else 2**0.5) + 1e-12
    packed, pivots = linalg.lu_factor(a)
    assert pivots.dtype == tg.int32
    for one, other in zip((p, lower, upper), tg.lu_unpack(packed, pivots)):
        assert tg.equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(left, adjoint, dtype):
    a, b = matrix(2, 12, 12, dtype=dtype), matrix(2, 12, 3, dtype=dtype)
    used = a.mH if adjoint else a
    x = linalg.lu_solve(*linalg.lu_factor(a), b if left else b.mT, left=left, adjoint=adjoint)
    assert tg.allclose(used @ x, b) if left else tg.allclose(x @ used, b.mT)


def test_singular_matrices_are_named_and_can_be_factored_all_the_same():
    a = matrix(3, 4, 4)
    a[1, :, 2] = 0
    with pytest.raises(linalg.LinAlgError, match=r"matrix \(1,\) of the batch is singular, U\[2, 2\] is 0"):
        linalg.lu_factor(a)
    packed, pivots, info = linalg.lu_factor_ex(a)
    assert info.tolist() == [0, 3, 0]
    p, lower, upper = tg.lu_unpack(packed, pivots)
    assert tg.allclose(p @ lower @ upper, a)
    assert len(tg.lu(a)) == 2 and len(tg.lu(a, get_infos=True)) == 3


def test_gradients_of_wide_and_tall_matrices_with_exchanged_rows():
    for shape in ((3, 5), (5, 3), (2, 4, 4)):
        a = matrix(*shape, dtype=tg.complex128).requires_grad_()
        p, lower, upper = linalg.lu(a)
        (p.detach() @ lower @ upper).real.sum().backward()
        assert tg.allclose(a.grad, tg.ones_like(a))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 30])
def test_ldl(n, hermitian, dtype):
    a = matrix(3, n, n, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    a[0].diagonal().zero_()  # so that it needs blocks of two
    a[0] += 0 if n > 1 else 1
    b = matrix(3, n, 2, dtype=dtype)
    packed, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    assert n == 1 or (pivots[0] < 0).any()
    assert tg.allclose(a @ linalg.ldl_solve(packed, pivots, b, hermitian=hermitian), b)


def test_ldl_of_singular_matrices():
    assert linalg.ldl_factor_ex(tg.zeros(2, 2)).info.item() == 1
    with pytest.raises(linalg.LinAlgError, match="column 1"):
        linalg.ldl_factor(tg.zeros(2, 2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 3), (4, 4), (2, 6, 2), (3, 5)], ids=str)
def test_householder_reflections(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    packed, tau = tg.geqrf(a)
    rows = shape[-2]
    r = packed.triu()
    assert tg.allclose(tg.ormqr(packed, tau, r), a)
    assert tg.allclose(tg.ormqr(packed, tau, a, transpose=True), r)
    eye = tg.eye(rows, dtype=dtype).expand(*shape[:-2], rows, rows)
    q = tg.ormqr(packed, tau, eye)
    assert tg.allclose(tg.ormqr(packed, tau, eye, left=False), q)
    if rows >= shape[-1]:
        assert tg.allclose(linalg.householder_product(packed, tau), q[..., : shape[-1]])


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (2, 15, 15)], ids=str)
def test_low_rank(shape):
    a = matrix(*shape[:-1], 3) @ matrix(*shape[:-2], 3, shape[-1])
    u, s, v = tg.svd_lowrank(a, q=5)
    assert s.shape == (*shape[:-2], 5)
    assert tg.allclose((u * s[..., None, :]) @ v.mH, a)
    u, s, v = tg.pca_lowrank(a, q=4)
    assert tg.allclose((u * s[..., None, :]) @ v.mH, a - a.mean(-2, keepdim=True))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: linalg.lu_factor(tg.ones(2)), ValueError, "at least 2 dimensions"),
        (lambda: linalg.lu(tg.ones(2, 2, dtype=tg.int64)), TypeError, "int64"),
        (lambda: linalg.lu_solve(tg.eye(2), tg.tensor([1, 2]), tg.ones(2, 1)), TypeError, "int32"),
        (lambda: tg.lu_unpack(tg.eye(2), tg.tensor([1, 3]).int()), ValueError, "pivots from 1 to 2"),
        (lambda: tg.lu_solve(tg.ones(3, 1), *linalg.lu_factor(tg.eye(2))), ValueError, "cannot solve"),
        (lambda: linalg.householder_product(tg.ones(2, 3), tg.ones(2)), ValueError, "as many rows as columns"),
        (lambda: linalg.householder_product(tg.ones(3, 2), tg.ones(3)), ValueError, "needs tau"),
        (lambda: tg.ormqr(tg.ones(3, 2), tg.ones(2), tg.ones(2, 2)), ValueError, "cannot multiply"),
        (lambda: linalg.ldl_solve(tg.eye(2), tg.tensor([1, 2]), tg.ones(2, 1)), TypeError, "int32"),
        (lambda: tg.svd_lowrank(tg.ones(3, 3), niter=-1), ValueError, "niter"),
        (lambda: tg.pca_lowrank(tg.ones(3, 3), q=4), ValueError, "q from 0 to 3"),
    ],
)
def test_errors_say_what_to_do(call, kind, words):
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, RuntimeError), "what PyTorch's except clauses catch"


@pytest.mark.parametrize("factors", [tg.geqrf, linalg.ldl_factor], ids=["geqrf", "ldl_factor"])
def test_what_has_no_gradient_says_so(factors):
    a = tg.eye(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="has no gradient"):
        factors(a)[0].sum().backward()
