"""Samples of distributions without a mean: angles, correlation matrices, relaxed and transformed variables."""

import math

import numpy as np
import pytest
import telegrad as tg
from telegrad import distributions as d

DRAWN = 20_000


def test_angles_point_where_they_should():
    made = d.VonMises(tg.tensor([0.0, -1.5, 3.0]), tg.tensor([2.0, 0.5, 30.0]))
    drawn = made.sample((DRAWN,)).numpy()
    assert (np.abs(drawn) <= math.pi).all()
    length = np.exp(1j * drawn).mean(0)
    np.testing.assert_allclose(length, (1 - made.variance.numpy()) * np.exp(1j * made.mean.numpy()), atol=0.03)


def test_a_sharp_von_mises_density_is_finite():
    made = d.VonMises(tg.tensor(0.0), tg.tensor(1e4))
    expected = d.Normal(0.0, 0.01).log_prob(tg.tensor(0.01))
    assert made.log_prob(tg.tensor(0.01)).item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize("size, concentration", [(2, 0.5), (3, 1.0), (5, 3.0)])
def test_correlations_have_their_spread(size, concentration):
    factor = d.LKJCholesky(size, tg.tensor(concentration)).sample((DRAWN,))
    matrices = (factor @ factor.mT).numpy()
    rows, columns = np.tril_indices(size, -1)
    matrices = matrices[:, rows, columns]
    # Each correlation r has (r + 1) / 2 of a Beta distribution with both concentrations equal to this.
    a = concentration + size / 2 - 1
    np.testing.assert_allclose(matrices.mean(0), 0, atol=0.03)
    np.testing.assert_allclose(matrices.var(0), 1 / (2 * a + 1), rtol=0.08)


def test_the_density_of_correlations_has_an_integral_of_one():
    # In two dimensions the factor is (r, sqrt(1 - r**2)), and its density by r that of the correlation.
    made = d.LKJCholesky(2, tg.tensor(2.5))
    r = np.linspace(-1, 1, 20_003)[1:-1]
    rows = np.stack([np.stack([np.ones_like(r), 0 * r], -1), np.stack([r, np.sqrt(1 - r * r)], -1)], -2)
    assert made.log_prob(tg.tensor(rows)).exp().sum().item() * (r[1] - r[0]) == pytest.approx(1, abs=1e-3)


def test_relaxed_samples_round_to_those_of_the_discrete_variable():
    probs = tg.tensor([0.1, 0.2, 0.7])
    drawn = d.RelaxedOneHotCategorical(0.5, probs).sample((DRAWN,))
    np.testing.assert_allclose(np.bincount(drawn.argmax(-1).numpy()) / DRAWN, probs.numpy(), atol=0.02)
    relaxed = d.RelaxedBernoulli(0.5, probs)
    np.testing.assert_allclose((relaxed.sample((DRAWN,)) > 0.5).numpy().mean(0), probs.numpy(), atol=0.02)
    assert relaxed.temperature.item() == 0.5 and relaxed.logits.shape == (3,)


@pytest.mark.parametrize("name", ["RelaxedBernoulli", "RelaxedOneHotCategorical"])
def test_gradients_flow_through_relaxed_samples(name):
    logits = tg.tensor([0.1, -1.0, 0.5], requires_grad=True)
    drawn = getattr(d, name)(0.7, logits=logits).rsample((2000,))
    (slope,) = tg.autograd.grad(drawn.mean(0)[0], logits)
    assert slope[0] > 0.05 and np.isfinite(slope.numpy()).all()


def test_straight_through_samples_are_one_hot_with_the_slopes_of_the_probabilities():
    logits = tg.tensor([0.1, -1.0, 0.5], requires_grad=True)
    made, weights = d.OneHotCategoricalStraightThrough(logits=logits), tg.tensor([1.0, 2.0, 3.0])
    drawn = made.rsample()
    assert sorted(drawn.detach().round().tolist()) == [0, 0, 1]
    (slope,) = tg.autograd.grad((drawn * weights).sum(), logits, retain_graph=True)
    (expected,) = tg.autograd.grad((made.probs * weights).sum(), logits)
    np.testing.assert_allclose(slope.numpy(), expected.numpy(), atol=1e-15)


def test_logistic_normal_samples_are_normal_underneath():
    loc, scale = tg.tensor([0.5, -1.0]), tg.tensor([1.0, 0.5])
    below = d.StickBreakingTransform().inv(d.LogisticNormal(loc, scale).sample((DRAWN,))).numpy()
    np.testing.assert_allclose(below.mean(0), loc.numpy(), atol=0.05)
    np.testing.assert_allclose(below.std(0), scale.numpy(), rtol=0.05)
    assert d.LogisticNormal(0.0, 1.0).event_shape == (2,)


def test_low_rank_normal_vectors_have_their_covariance():
    factor, diagonal = tg.tensor([[1.5], [-0.5], [0.25]]), tg.tensor([0.5, 1.0, 2.0])
    made = d.LowRankMultivariateNormal(tg.zeros(3), factor, diagonal)
    whole = d.MultivariateNormal(tg.zeros(3), made.covariance_matrix)
    np.testing.assert_allclose(made.precision_matrix.numpy(), whole.precision_matrix.numpy(), atol=1e-12)
    np.testing.assert_allclose(made.scale_tril.numpy(), whole.scale_tril.numpy())
    np.testing.assert_allclose(np.cov(made.sample((DRAWN,)).numpy().T), made.covariance_matrix.numpy(), atol=0.15)


def test_counts_of_different_numbers_of_trials_are_not_listed():
    made = d.Binomial(tg.tensor([2.0, 3.0]), tg.tensor(0.5))
    assert made.sample((3,)).shape == (3, 2) and bool((made.sample((100,)) <= made.total_count).all())
    with pytest.raises(NotImplementedError, match="same number everywhere"):
        made.entropy()
    listed = d.Binomial(3, tg.tensor([0.25, 0.5])).enumerate_support()
    assert listed.shape == (4, 2)


def numeric_slope(function, at, step=1e-4):
    return ((function(at + step) - function(at - step)) / (2 * step)).numpy()


@pytest.mark.parametrize("name", ["log_prob", "cdf", "icdf"])
@pytest.mark.parametrize("kind, at", [("ContinuousBernoulli", 0.5), ("GeneralizedPareto", 0.0)])
def test_slopes_where_a_series_is_used(kind, at, name):
    def function(parameter):
        made = d.ContinuousBernoulli(parameter, lims=(0.5, 0.5)) if wide else d.GeneralizedPareto(0.0, 1.5, parameter)
        return getattr(made, name)(value)

    value, wide = tg.tensor([0.25, 0.75]), kind == "ContinuousBernoulli"
    parameter = tg.tensor(at, requires_grad=True)
    made = d.ContinuousBernoulli(parameter) if wide else d.GeneralizedPareto(0.0, 1.5, parameter)
    result = getattr(made, name)(value)
    slopes = [tg.autograd.grad(each, parameter, retain_graph=True)[0].item() for each in result]
    np.testing.assert_allclose(slopes, numeric_slope(function, tg.tensor(at)), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(result.numpy(force=True), function(tg.tensor(at + 1e-5)).numpy(), atol=1e-4)


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: d.LKJCholesky(1), "dim must be an integer of at least 2"),
        (lambda: d.Wishart(0.5, tg.eye(2)), "parameter df must be numbers above 1"),
        (lambda: d.Wishart(3.0), "exactly one of covariance_matrix"),
        (lambda: d.LowRankMultivariateNormal(tg.zeros(2), tg.ones(3, 1), tg.ones(2)), "needs loc"),
        (lambda: d.Binomial(2.5, tg.tensor(0.5)), "total_count must be whole numbers of at least 0"),
        (lambda: d.NegativeBinomial(2, tg.tensor(1.0)), "at least 0 and below 1"),
        (lambda: d.InverseGamma(-1.0, 1.0), "InverseGamma: parameter concentration"),
        (lambda: d.RelaxedBernoulli(0.5), "either probs or logits"),
    ],
)
def test_misuse_is_told(act, message):
    with pytest.raises(ValueError, match=message):
        act()
