"""Linear algebra: reconstruction, batches, complex matrices, singular input, types, and the errors."""

import numpy as np
import pytest
import telegrad as tg

la = tg.linalg
RANDOM = np.random.default_rng(0)
DTYPES = ["float32", "float64", "complex64", "complex128"]


def made(*shape, dtype="float64"):
    values = RANDOM.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * RANDOM.standard_normal(shape)
    return tg.tensor(values.astype(dtype))


def close(one, other):
    tolerance = 1e-4 if one.dtype.itemsize == (8 if one.dtype.kind == "c" else 4) else 1e-10
    np.testing.assert_allclose(one.numpy(force=True), getattr(other, "_array", other), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 3, 5), (0, 3)])
def test_factors_multiply_to_the_matrix(dtype, shape):
    a = made(*shape, dtype=dtype)
    for mode in ("reduced", "complete"):
        q, r = la.qr(a, mode)
        close(q @ r, a)
    for full in (True, False):
        u, s, vh = la.svd(a, full)
        k = s.shape[-1]
        close((u[..., :k] * s.unsqueeze(-2).to(a.dtype)) @ vh[..., :k, :], a)
    assert s.dtype.kind == "f"
    close(la.pinv(a) @ a @ la.pinv(a), la.pinv(a))


@pytest.mark.parametrize("dtype", DTYPES)
def test_square_matrices(dtype):
    a = made(2, 40, 40, dtype=dtype) + 20 * np.eye(40, dtype=dtype)
    b = made(2, 40, 3, dtype=dtype)
    positive = a @ a.mH
    close(a @ la.inv(a), np.broadcast_to(np.eye(40), a.shape))
    close(a @ la.solve(a, b), b)
    close(la.solve(a, b.mT, left=False) @ a, b.mT)
    for upper in (True, False):
        triangle = a.triu() if upper else a.tril()
        close(triangle @ la.solve_triangular(a, b, upper=upper), b)
        factor = la.cholesky(positive, upper=upper)
        close(factor.mH @ factor if upper else factor @ factor.mH, positive)
        close(positive @ tg.cholesky_solve(b, factor, upper), b)
    values, vectors = la.eigh(positive)
    close(vectors * values.unsqueeze(-2).to(a.dtype) @ vectors.mH, positive)
    values, vectors = la.eig(a)
    assert values.dtype.kind == vectors.dtype.kind == "c"
    close(a.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2))
    sign, logabsdet = la.slogdet(a / 20)
    close(sign * tg.exp(logabsdet), la.det(a / 20))
    la.det(a * 100)  # may be infinite, silently


def test_complex_gradients_of_products_and_solutions():
    # Moving one part of one element by a small step changes a real loss as the gradient says.
    a, b = made(2, 2, dtype="complex128"), made(2, 2, dtype="complex128")
    functions = [
        lambda x: x @ b,
        lambda x: b @ x,
        lambda x: tg.einsum("ij,jk->ki", x, b),
        lambda x: la.inv(x),
        lambda x: la.solve(x, b),
        lambda x: la.solve_triangular(x, b, upper=True),
        lambda x: la.cholesky(x @ x.mH),
        lambda x: la.det(x),
        lambda x: la.slogdet(x).logabsdet,
        lambda x: la.matrix_exp(x),
        lambda x: la.pinv(x),
        lambda x: la.svdvals(x),
        lambda x: la.eigvalsh(x @ x.mH),
        lambda x: la.eigvals(x).sum(),
        lambda x: la.qr(x).R,
        lambda x: la.vector_norm(x, 3),
        lambda x: tg.vdot(x.reshape(-1), b.reshape(-1)),
        lambda x: x.H @ x,
    ]
    for function in functions:

        def loss(array, function=function):
            result = function(array).reshape(-1)
            result = tg.view_as_real(result) if result.dtype.kind == "c" else result
            weights = np.linspace(0.5, 1.5, result.numel()).reshape(result.shape)
            return (result * tg.tensor(weights)).sum()

        leaf = a.clone().requires_grad_()
        loss(leaf).backward()
        for place in np.ndindex(2, 2):
            for step in (1e-6, 1e-6j):
                high, low = a.clone(), a.clone()
                high.numpy()[place] += step
                low.numpy()[place] -= step
                slope = (loss(high).item() - loss(low).item()) / 2e-6
                found = leaf.grad.numpy()[place]
                assert abs((found.real if step.real else found.imag) - slope) < 1e-6


def test_singular_matrices_are_named():
    singular = tg.zeros(3, 2, 2) + tg.eye(2)
    singular[1] = 0
    with pytest.raises(la.LinAlgError, match=r"linalg.inv\(\): matrix 1 of the batch is singular"):
        la.inv(singular)
    with pytest.raises(RuntimeError, match=r"linalg.solve\(\): the matrix is singular"):
        la.solve(tg.zeros(2, 2), tg.ones(2))
    with pytest.raises(la.LinAlgError, match="not positive definite"):
        la.cholesky(-tg.eye(2))
    with pytest.raises(la.LinAlgError, match="a diagonal has a zero"):
        la.solve_triangular(tg.zeros(2, 2), tg.ones(2, 1), upper=True)
    with pytest.raises(la.LinAlgError, match="nan or infinite"):
        la.svd(tg.full((2, 2), float("nan")))
    inverse, info = la.inv_ex(singular)
    assert info.tolist() == [0, 1, 0]
    assert inverse[1].isnan().all()
    assert la.cholesky_ex(-singular).info.tolist() == [1, 1, 1]
    assert la.solve_ex(singular, tg.ones(3, 2, 1)).info.tolist() == [0, 1, 0]
    assert la.det(singular).tolist() == [1, 0, 1]
    assert la.slogdet(singular).logabsdet[1].item() == float("-inf")
    assert np.isnan(tg.logdet(-tg.eye(3)).item())


def test_a_singular_matrix_has_a_gradient_of_its_determinant():
    a = tg.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=tg.float64, requires_grad=True)
    la.det(a).backward()
    np.testing.assert_allclose(a.grad.numpy(), [[4, -2], [-2, 1]], atol=1e-12)


def test_what_has_no_gradient_says_so():
    a = made(4, 2).requires_grad_()
    with pytest.raises(tg.errors.AutogradError, match="complete"):
        la.qr(a, "complete")


def test_saved_results_that_were_overwritten_are_noticed():
    a = made(3, 3).requires_grad_()
    q, r = la.qr(a)
    with tg.no_grad():
        q.zero_()
    with pytest.raises(tg.errors.AutogradError, match="LinalgQrBackward needs its result"):
        r.sum().backward()
    q, r = la.qr(a)
    r.sum().backward()
    with pytest.raises(tg.errors.AutogradError, match="retain_graph"):
        q.sum().backward()


def test_products_of_integers_and_halves():
    ints = tg.arange(6).reshape(2, 3)
    assert (ints @ ints.T).tolist() == [[5, 14], [14, 50]]
    half = tg.full((1, 4096), 0.1, dtype=tg.float16)
    assert abs((half @ half.T).item() - 40.96) < 0.1  # summed in float32
    assert (half @ half.T).dtype == tg.float16


def test_einsum_forms_agree():
    a, b = made(2, 3), made(3, 4)
    expected = a @ b
    for result in (
        tg.einsum("ij,jk->ik", a, b),
        tg.einsum("ij,jk", [a, b]),
        tg.einsum(" i j , j k -> i k ", a, b),
        tg.einsum(a, [0, 1], b, [1, 2], [0, 2]),
        tg.einsum(a, [5, 1], b, [1, 7]),
        tg.einsum("...j,jk->...k", a, b),
    ):
        close(result, expected)
    close(tg.einsum("i,i,i->i", a[0], a[0], a[0]), a[0] ** 3)
    close(tg.einsum("ij,kl,mn->", a, b, a), a.sum() * b.sum() * a.sum())


def test_least_squares():
    a, b = made(5, 2), made(5, 1)
    solution, residuals, rank, values = la.lstsq(a, b, driver="gelsd")
    expected = np.linalg.lstsq(a.numpy(), b.numpy())
    close(solution, expected[0])
    close(residuals, expected[1])
    assert rank.item() == 2
    close(values, expected[3])


def test_large_triangles_and_exponentials():
    n = 100
    lower = tg.tensor(np.tril(RANDOM.uniform(0.5, 1, (n, n))) + 5 * np.eye(n))
    b = made(n, 2)
    close(lower @ la.solve_triangular(lower, b, upper=False), b)
    unit = lower / 10
    unit_full = unit.tril(-1) + tg.eye(n, dtype=tg.float64)
    close(unit_full @ la.solve_triangular(unit, b, upper=False, unitriangular=True), b)
    turn = tg.tensor([[0.0, -30.0], [30.0, 0.0]], dtype=tg.float64)
    close(la.matrix_exp(turn), [[np.cos(30), -np.sin(30)], [np.sin(30), np.cos(30)]])


def test_out_receives_the_result():
    out = tg.empty(2, 2)
    for write in (
        lambda: tg.matmul(tg.eye(2), tg.eye(2), out=out),
        lambda: tg.mm(tg.eye(2), tg.eye(2), out=out),
        lambda: la.inv(tg.eye(2), out=out),
        lambda: tg.addmm(tg.zeros(2), tg.eye(2), tg.eye(2), out=out),
    ):
        out.zero_()
        assert write() is out
        assert out.tolist() == [[1, 0], [0, 1]]


A = tg.ones(2, 3)


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda: A @ A, ValueError, r"matmul\(\) cannot multiply shapes \(2, 3\) and \(2, 3\)"),
        (lambda: A @ tg.tensor(1.0), ValueError, "cannot multiply"),
        (lambda: A @ A.T.double(), TypeError, r"one dtype, and you gave float32 and float64; .* x.to\('float64'\)"),
        (lambda: tg.ones(2, 2, dtype=tg.bool_) @ tg.ones(2, 2, dtype=tg.bool_), TypeError, "not for booleans"),
        (lambda: tg.mm(A, A[0]), ValueError, r"mm\(\) takes a matrix and a matrix .* \(2, 3\) and \(3,\)"),
        (lambda: tg.dot(A[0], A[:, 0]), ValueError, "two vectors|a vector and a vector"),
        (lambda: tg.bmm(tg.ones(2, 2, 2), tg.ones(3, 2, 2)), ValueError, "as many matrices"),
        (lambda: tg.outer(A, A), ValueError, "two vectors"),
        (lambda: tg.addmm(tg.ones(3), A, A.T), ValueError, r"input of shape \(3,\) to a product of shape \(2, 2\)"),
        (lambda: tg.einsum("ij,jk", A, A), ValueError, "lengths 3 and 2 for one label"),
        (lambda: tg.einsum("ijk", A), ValueError, "operand 0 has 2 dimensions, and its subscripts name 3"),
        (lambda: tg.einsum("ij->ik", A), ValueError, "names 'k' in the result"),
        (lambda: tg.einsum("i1", A), ValueError, "letters"),
        (lambda: tg.einsum("ij,ij", A), ValueError, "subscripts for 2 operands, and you gave 1"),
        (lambda: tg.einsum("ii", A), ValueError, "diagonal of unequal lengths"),
        (lambda: tg.einsum("ij,ij->", A, A.double()), TypeError, "one dtype"),
        (lambda: tg.tensordot(A, A, 1), ValueError, "equal lengths"),
        (lambda: la.inv(A), ValueError, r"linalg.inv\(\) takes square matrices, and you gave shape \(2, 3\)"),
        (lambda: la.inv(tg.eye(2, dtype=tg.int64)), TypeError, "float32, float64, complex64 and complex128, not int64"),
        (lambda: la.inv(A[0]), ValueError, "at least 2 dimensions"),
        (lambda: la.solve(tg.eye(2), tg.ones(3)), ValueError, "cannot solve a system"),
        (lambda: la.qr(A, "raw"), ValueError, '"reduced", "complete" or "r"'),
        (lambda: la.matrix_norm(A, "max"), ValueError, "takes ord"),
        (lambda: la.matrix_norm(A, 2, (0, 0)), ValueError, "two different dimensions"),
        (lambda: la.vector_norm(tg.arange(3)), TypeError, "floating point, not int64"),
        (lambda: la.vector_norm(tg.ones(0), float("inf")), ValueError, "needs elements"),
        (lambda: la.multi_dot([A]), ValueError, "at least 2"),
        (lambda: la.cross(A, tg.ones(2, 2)), ValueError, "length 3"),
        (lambda: tg.cdist(A, tg.ones(2, 2)), ValueError, "rows of one length"),
        (lambda: la.inv(np.eye(2)), TypeError, "takes tensors"),
    ],
)
def test_misuse_says_what_was_wrong(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_products_along_no_elements():
    assert tg.matmul(tg.ones(1, 0, 0), tg.ones(0, 1)).shape == (1, 0, 1)
    assert tg.inner(tg.ones(0), tg.ones(0)).tolist() == 0
    a, b = tg.ones(2, 3, 0, requires_grad=True), tg.ones(0, 4, requires_grad=True)
    one, other = tg.autograd.grad((a @ b).sum(), (a, b))
    assert one.shape == a.shape and other.shape == b.shape


def test_logdet_of_complex_matrices():
    pairs = tg.tensor([[[2, 1], [0.5, 0]], [[0, 1], [1, -1]]], dtype=tg.float64, requires_grad=True)
    a = tg.view_as_complex(pairs)
    assert tg.logdet(a).exp().allclose(tg.det(a))
    assert tg.autograd.gradcheck(lambda x: tg.view_as_real(tg.logdet(tg.view_as_complex(x))), (pairs,))


def test_the_direction_of_a_complex_determinant_has_a_gradient():
    pairs = tg.tensor([[[2, 1], [0.5, 0]], [[0, 1], [1, -1]]], dtype=tg.float64, requires_grad=True)

    def both(x):
        sign, logabsdet = tg.linalg.slogdet(tg.view_as_complex(x))
        return tg.view_as_real(sign), logabsdet

    assert tg.autograd.gradcheck(both, (pairs,)) and tg.autograd.gradgradcheck(both, (pairs,))
    plain = tg.linalg.slogdet(tg.view_as_complex(pairs.detach()))
    assert tg.allclose(tg.view_as_real(plain.sign), both(pairs)[0]) and tg.allclose(plain.logabsdet, both(pairs)[1])
    singular = tg.zeros(2, 2, dtype=tg.complex64, requires_grad=True)
    assert tg.linalg.slogdet(singular).sign == 0


def test_norms_and_products_of_bfloat16_have_gradients_of_bfloat16():
    a = tg.tensor([1.0, 2.0], dtype=tg.bfloat16, requires_grad=True)
    assert tg.autograd.grad(tg.linalg.vector_norm(a, 3), a)[0].dtype == tg.bfloat16
    m = tg.ones(2, 2, dtype=tg.bfloat16, requires_grad=True)
    for one in tg.autograd.grad(tg.addmm(m, m.detach(), m, alpha=0.5, beta=2).sum(), m):
        assert one.dtype == tg.bfloat16


def test_powers_of_whole_numbers_are_int64():
    assert tg.vander(tg.tensor([2, 100], dtype=tg.int8), 3).tolist() == [[4, 2, 1], [10000, 100, 1]]


def test_gradients_of_hermitian_matrices_are_hermitian():
    values = np.random.default_rng(1).normal(size=(2, 3, 3, 2))
    matrix = tg.tensor(values[0] @ [1, 1j], requires_grad=True)
    (gradient,) = tg.autograd.grad(la.eigh(matrix).eigenvectors, matrix, tg.tensor(values[1] @ [1, 1j]))
    np.testing.assert_allclose(gradient.numpy(), gradient.mH.numpy(), atol=1e-12)


def test_a_length_of_1_is_stretched_by_tensordot():
    a, b = tg.ones(2, 1), tg.arange(6.0).reshape(2, 3)
    assert tg.tensordot(a, b, ([1], [1])).tolist() == [[3, 12], [3, 12]]
    assert tg.tensordot(b, a, ([1], [1])).tolist() == [[3, 3], [12, 12]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [0.0, 0.1, 3.0, 40.0])
def test_exponentials_of_matrices_of_any_norm(dtype, size):
    """A rotation's exponential is known, and so is its derivative in the direction of the matrix itself."""
    turn = np.array([[0.0, -size], [size, 0.0]])
    x = tg.tensor(turn.astype(dtype), requires_grad=True)
    result = la.matrix_exp(x)
    wanted = np.array([[np.cos(size), -np.sin(size)], [np.sin(size), np.cos(size)]])
    tolerance = 2e-5 if dtype == "float32" else 1e-13
    assert np.allclose(result.detach().numpy(), wanted, atol=tolerance)
    result.backward(tg.tensor(1e6 * turn.astype(dtype)))
    # The sum of the gradient's products with the matrix is the derivative along it: turn @ exp(turn).
    found = (x.grad.double().numpy() * turn).sum()
    assert np.isclose(found, 1e6 * (turn * (turn @ wanted)).sum(), rtol=1e-4, atol=1e6 * size * size * tolerance * 10)


@pytest.mark.parametrize("upper", [False, True])
def test_triangles_with_many_right_sides(upper):
    rng = np.random.default_rng(1)
    triangle = (np.triu if upper else np.tril)(rng.standard_normal((70, 70))) + 10 * np.eye(70)
    for columns in (1, 63, 64, 200):
        wanted = rng.standard_normal((70, columns))
        found = la.solve_triangular(tg.tensor(triangle), tg.tensor(triangle @ wanted), upper=upper)
        assert np.allclose(found.numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("size", [1e-42, 1.5e38])
def test_matrix_exp_passes_on_tiny_and_huge_gradients(size):
    x = tg.zeros(2, 2, requires_grad=True)
    given = tg.tensor([[size, 0], [0, -size]])
    la.matrix_exp(x).backward(given)
    np.testing.assert_allclose(x.grad.numpy(), given.numpy(), rtol=1e-6)
