"""Some eigenvalues of large matrices: beside those of whole decompositions, from sparse matrices, with gradients."""

import numpy as np
import pytest
import telegrad as tg


@pytest.fixture(autouse=True)
def seeded():
    tg.manual_seed(0)


def matrix(size, seed=0, batch=(), dtype="float64"):
    """Return symmetric matrices whose eigenvalues are well apart."""
    generator = np.random.default_rng(seed)
    basis = np.linalg.qr(generator.standard_normal((*batch, size, size)))[0]
    values = np.linspace(1, 2, size) ** 4
    return tg.tensor((basis * values) @ np.swapaxes(basis, -1, -2)).to(np.dtype(dtype))


def check(a, values, vectors, b=None, tolerance=1e-6):
    metric = vectors if b is None else b @ vectors
    np.testing.assert_allclose((a @ vectors).numpy(), (metric * values.unsqueeze(-2)).numpy(), atol=20 * tolerance)
    identity = np.broadcast_to(np.eye(values.shape[-1]), (*values.shape, values.shape[-1]))
    np.testing.assert_allclose((vectors.mT @ metric).numpy(), identity, atol=tolerance)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_the_ends_of_the_spectrum(largest, batch):
    a = matrix(30, batch=batch)
    values, vectors = tg.lobpcg(a, 3, largest=largest)
    whole = np.linalg.eigvalsh(a.numpy())
    np.testing.assert_allclose(values.numpy(), whole[..., :-4:-1] if largest else whole[..., :3], rtol=1e-7)
    check(a, values, vectors)


def test_single_precision():
    a = matrix(40, dtype="float32")
    values, vectors = tg.lobpcg(a, 2, n=4)
    assert values.dtype == vectors.dtype == tg.float32
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(a.numpy())[:-3:-1], rtol=1e-4)


def test_a_sparse_laplacian():
    size = 60
    places = np.arange(size)
    rows = np.concatenate([places, places[:-1], places[1:]])
    columns = np.concatenate([places, places[1:], places[:-1]])
    numbers = np.concatenate([np.full(size, 2.0), np.full(2 * size - 2, -1.0)])
    a = tg.sparse_coo_tensor(np.stack([rows, columns]), numbers, (size, size))
    values, vectors = tg.lobpcg(a, 4, largest=False, niter=500)
    exact = 2 - 2 * np.cos(np.pi * np.arange(1, 5) / (size + 1))
    np.testing.assert_allclose(values.numpy(), exact, rtol=1e-5)
    assert vectors.shape == (size, 4)


@pytest.mark.parametrize("largest", [True, False])
def test_generalized_problems(largest):
    a, b = matrix(24), matrix(24, 1)
    values, vectors = tg.lobpcg(a, 2, B=b, largest=largest)
    whole = np.sort(np.linalg.eigvals(np.linalg.solve(b.numpy(), a.numpy())).real)
    np.testing.assert_allclose(values.numpy(), whole[:-3:-1] if largest else whole[:2], rtol=1e-6)
    check(a, values, vectors, b)


def test_a_preconditioner_saves_steps():
    a = tg.tensor(np.diag(np.linspace(1, 1000, 60)) + 0.01)

    def steps(**options):
        seen = []
        tg.manual_seed(0)
        tg.lobpcg(a, 2, largest=False, tracker=lambda it: seen.append(it.ivars["istep"]), **options)
        return len(seen)

    assert steps(iK=tg.linalg.inv(a)) < steps() / 2


def test_a_tracker_sees_and_stops_it():
    seen = []

    def track(iteration):
        seen.append((iteration.ivars["istep"], iteration.E.shape, iteration.R.shape, iteration.tvars["rerr"].shape))
        iteration.bvars["force_stop"] = len(seen) == 2

    values, _ = tg.lobpcg(matrix(30), 2, n=3, tracker=track)
    assert seen == [(step, (3,), (30, 3), (3,)) for step in (0, 1)] and values.shape == (2,)
    assert tg.lobpcg(matrix(30), 2, niter=0)[0].shape == (2,)


def test_vectors_to_begin_with():
    a = matrix(20)
    exact = np.linalg.eigh(a.numpy())[1][:, ::-1][:, :3].copy()
    seen = []
    tg.lobpcg(a, X=tg.tensor(exact), tracker=seen.append)
    assert not seen  # nothing to do


@pytest.mark.parametrize("largest", [True, False])
def test_gradients(largest):
    a, b = matrix(6).requires_grad_(), matrix(6, 1).requires_grad_()

    def function(a, b):
        values, vectors = tg.lobpcg(a + a.mT, 2, B=b + b.mT, largest=largest)
        return values, vectors.abs()  # whose sign is by chance

    assert tg.autograd.gradcheck(function, (a, b))
    found = tg.lobpcg(a.detach(), 2, largest=largest)[0]
    recorded = tg.lobpcg(a, 2, largest=largest)[0]
    np.testing.assert_allclose(recorded.numpy(force=True), found.numpy(), rtol=1e-7)


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: tg.lobpcg(tg.ones(5, 5), 2), "at least 3 n rows"),
        (lambda: tg.lobpcg(tg.ones(9, 9), 2, n=1), "1 <= k <= n"),
        (lambda: tg.lobpcg(tg.ones(9, 8)), "square matrices"),
        (lambda: tg.lobpcg(tg.ones(9, 9), method="fast"), "method is"),
    ],
)
def test_misuse_is_told(act, message):
    with pytest.raises(ValueError, match=message):
        act()
