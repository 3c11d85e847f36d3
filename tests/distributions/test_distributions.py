"""Distributions: PyTorch's numbers (tests/golden/record_distributions.py), samples that fit them, gradients through samples."""

import math

import numpy as np
import pytest
import telegrad as tg
from helpers.distributions import CASES, GOLDEN, label, make
from helpers.golden import assert_close
from telegrad import distributions as d

DRAWN = 20_000


# Their means are infinite, circular, or not known.
MEANLESS = {
    "Cauchy",
    "ExpRelaxedCategorical",
    "HalfCauchy",
    "LKJCholesky",
    "LogisticNormal",
    "LogitRelaxedBernoulli",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "VonMises",
}
# PyTorch's Bessel functions have eight digits.
TOLERANCES = {"VonMises": 1e-6}


def quantiles(made):
    return tg.tensor(GOLDEN["quantiles"] if made.batch_shape[-1:] in ((), (2,)) else GOLDEN["quantiles"][:1])


@pytest.mark.parametrize("case", CASES, ids=label)
def test_numbers(case):
    made = make(case["name"], case["parameters"])
    value, tolerance = tg.tensor(case["values"]), TOLERANCES.get(case["name"], 1e-12)
    assert (made.batch_shape, made.event_shape) == (tuple(case["batch_shape"]), tuple(case["event_shape"]))
    assert made.support.check(value).tolist() == case["support"]
    assert_close(made.log_prob(value), case["log_prob"], tolerance)
    for name in ("mean", "variance", "stddev", "mode"):
        if case[name] is not None and not (name == "mode" and case["name"] == "Dirichlet"):
            assert_close(getattr(made, name), case[name], tolerance)
    if case["entropy"] is not None:
        assert_close(made.entropy(), case["entropy"], tolerance)
    if case["cdf"] is not None:
        assert_close(made.cdf(value), case["cdf"], tolerance)
    if case["icdf"] is not None:
        assert_close(made.icdf(quantiles(made)), case["icdf"], tolerance)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_derivatives_by_the_parameters(case):
    tolerance = TOLERANCES.get(case["name"], 1e-10)
    for key, function in (
        ("slopes_of_log_prob", lambda made: made.log_prob(tg.tensor(case["values"]))),
        ("slopes_of_icdf", lambda made: made.icdf(quantiles(made))),
    ):
        if case[key] is None:
            continue
        leaves = [v if isinstance(v, int) else tg.tensor(v, requires_grad=True) for v in case["parameters"].values()]
        made = getattr(d, case["name"])(**dict(zip(case["parameters"], leaves)))
        leaves = [leaf for leaf in leaves if not isinstance(leaf, int)]
        found = tg.autograd.grad(function(made).sum(), leaves, allow_unused=True, materialize_grads=True)
        for name, slope, expected in zip(case["parameters"], found, case[key]):
            # PyTorch gives gradients to the triangle of the factor that it does not read.
            assert_close(slope, np.tril(expected) if name == "scale_tril" else expected, tolerance)


def test_mixtures_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="each of the components"):
        d.MixtureSameFamily(d.Categorical(tg.ones(3)), d.Normal(tg.zeros(2), 1.0))
    with pytest.raises(ValueError, match="exactly one of covariance_matrix"):
        d.MultivariateNormal(tg.zeros(2))
    with pytest.raises(ValueError, match="lower triangular"):
        d.MultivariateNormal(tg.zeros(2), scale_tril=-tg.eye(2))


@pytest.mark.parametrize("case", CASES, ids=label)
def test_samples_have_the_mean_and_the_variance(case):
    made = make(case["name"], case["parameters"])
    drawn = made.sample((DRAWN,))
    assert drawn.shape == (DRAWN, *made.batch_shape, *made.event_shape) and not drawn.requires_grad
    assert bool(made.support.check(drawn).all())
    if case["name"] == "Categorical":
        counts = (drawn.numpy()[..., None] == np.arange(3)).mean(0)
        np.testing.assert_allclose(counts, made.probs.numpy(), atol=0.02)
        return
    if case["name"] in MEANLESS:
        return
    mean, spread = made.mean.numpy(), made.stddev.numpy()
    np.testing.assert_allclose(drawn.numpy().mean(0), mean, atol=5 * spread.max() / math.sqrt(DRAWN) + 1e-12)
    if case["name"] != "LogNormal":  # its variance is slow to show
        np.testing.assert_allclose(drawn.numpy().std(0), spread, rtol=0.1, atol=1e-9)


@pytest.mark.parametrize(
    "case", [case for case in CASES if getattr(d, case["name"]).has_rsample and case["name"] not in MEANLESS], ids=label
)
def test_gradients_through_samples(case):
    # The mean of samples must move with the parameters as the mean does.
    parameters = {key: tg.tensor(v, requires_grad=True) for key, v in case["parameters"].items()}
    made = getattr(d, case["name"])(**parameters)
    weights = tg.tensor(np.linspace(0.5, 1.5, made.mean.numel()).reshape(made.mean.shape))
    leaves = list(parameters.values())
    drawn = tg.autograd.grad((made.rsample((DRAWN,)).mean(0) * weights).sum(), leaves, retain_graph=True)
    exact = tg.autograd.grad((made.mean * weights).sum(), leaves, allow_unused=True, materialize_grads=True)
    for have, expected in zip(drawn, exact):
        np.testing.assert_allclose(have.numpy(), expected.numpy(), rtol=0.12, atol=0.03)


@pytest.mark.parametrize("concentration", [0.02, 0.3, 1.0, 4.5, 60.0, 2000.0])
def test_a_gamma_sample_grows_with_its_concentration(concentration):
    a = tg.tensor([concentration] * 5, requires_grad=True)
    (slope,) = tg.autograd.grad(d.Gamma(a, 1.0).rsample().sum(), a)
    assert np.isfinite(slope.numpy()).all()
    # Samples of a tiny concentration are the smallest number that there is, which does not move.
    assert (slope.numpy() >= 0).all() and (slope.numpy() > 0).any()


def cdf_slope(a, x):
    """Return the derivative of a quantile by the concentration, from differences of integrated densities."""
    grid = np.linspace(0, max(3 * a, 50), 20_001)[1:]

    def quantiles(a):
        density = np.exp((a - 1) * np.log(grid) - grid - math.lgamma(a))
        return np.cumsum(density) * (grid[1] - grid[0])

    step = 1e-4 * a
    place = np.searchsorted(grid, x)
    change = (quantiles(a + step) - quantiles(a - step))[min(place, len(grid) - 1)] / (2 * step)
    return -change / math.exp((a - 1) * math.log(x) - x - math.lgamma(a))


def test_the_slope_of_a_gamma_sample_is_the_implicit_one():
    from telegrad.distributions.gamma import _slope

    for a, x in ((1.5, 0.4), (2.0, 3.0), (7.0, 11.0), (40.0, 33.0)):
        have = float(_slope(np.array([a]), np.array([x]))[0])
        assert have == pytest.approx(cdf_slope(a, x), rel=0.02)


def test_independent_sums_over_its_dimensions():
    base = d.Normal(tg.zeros(3, 2), tg.ones(3, 2))
    made = d.Independent(base, 1)
    assert made.batch_shape == (3,) and made.event_shape == (2,)
    value = tg.ones(3, 2)
    assert_close(made.log_prob(value), base.log_prob(value).sum(-1).numpy())
    assert_close(made.entropy(), base.entropy().sum(-1).numpy())
    other = d.Independent(d.Normal(tg.ones(3, 2), tg.ones(3, 2)), 1)
    assert_close(d.kl_divergence(made, other), np.ones(3))
    assert made.expand((5, 3)).sample().shape == (5, 3, 2)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_expanding(case):
    made = make(case["name"], case["parameters"])
    wide = made.expand((4, *made.batch_shape))
    assert wide.sample().shape == (4, *made.batch_shape, *made.event_shape)
    value = made.sample()
    assert_close(wide.log_prob(value), np.broadcast_to(made.log_prob(value).numpy(), wide.batch_shape))
    assert type(made).__name__ in repr(made)


def test_all_values_of_those_that_have_few():
    chances = tg.tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    for made in (d.Categorical(chances), d.Bernoulli(chances)):
        values = made.enumerate_support()
        assert values.shape == (len(values), *made.batch_shape) and made.enumerate_support(expand=False).shape[1] == 1
        assert_close(made.log_prob(values).exp().sum(0), np.ones(made.batch_shape))
    assert d.Categorical(chances).param_shape == (2, 3)
    assert_close(d.Categorical(tg.ones(3)).perplexity(), 3.0)


def test_policy_gradients_reach_the_logits():
    logits = tg.tensor([0.1, 0.2, 0.3], requires_grad=True)
    made = d.Categorical(logits=logits)
    made.log_prob(tg.tensor(1)).backward()
    expected = np.eye(3)[1] - made.probs.numpy(force=True)
    assert_close(logits.grad, expected)


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda: d.Normal(0.0, -1.0), ValueError, "Normal: parameter scale must be numbers above 0"),
        (lambda: d.Uniform(1.0, 0.0), ValueError, "low must be below high"),
        (lambda: d.Bernoulli(), ValueError, "either probs or logits, and you gave neither"),
        (lambda: d.Bernoulli(0.5, 0.5), ValueError, "you gave both"),
        (lambda: d.Bernoulli(1.5), ValueError, "parameter probs must be numbers from 0 to 1"),
        (lambda: d.Categorical(tg.tensor(0.5)), ValueError, "at least one dimension"),
        (lambda: d.Categorical(tg.tensor([0.5, -0.5])), ValueError, "numbers of at least 0"),
        (lambda: d.Categorical(tg.ones(3)).log_prob(tg.tensor(3)), ValueError, "whole numbers from 0 to 2"),
        (lambda: d.Normal(tg.zeros(3), 1.0).log_prob(tg.zeros(2)), ValueError, "does not fit Normal of batch shape"),
        (lambda: d.Multinomial(-1, tg.ones(3)), ValueError, "total_count must be an integer of at least 0"),
        (lambda: d.Categorical(tg.ones(3)).rsample(), NotImplementedError, "gradients can go through log_prob"),
        (lambda: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)), NotImplementedError, "register_kl"),
        (lambda: d.Independent(d.Normal(0.0, 1.0), 1), ValueError, "must be from 0 to 0"),
        (lambda: d.register_kl(int, d.Normal), TypeError, "classes of distributions"),
    ],
)
def test_misuse_is_told(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_checks_can_be_left_out():
    assert bool(d.Normal(0.0, -1.0, validate_args=False).log_prob(tg.tensor(0.0)).isnan())
