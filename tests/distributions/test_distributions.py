"""Distributions: PyTorch's numbers (tests/golden/record_distributions.py), samples that fit them, gradients through samples."""

import math

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import assert_close, recorded
from telegrad import distributions as d

GOLDEN = recorded("distributions")
CASES = GOLDEN["cases"]
DRAWN = 20_000


@pytest.fixture(autouse=True)
def seeded():
    former = tg.get_default_dtype()
    tg.set_default_dtype(tg.float64)
    tg.manual_seed(0)
    yield
    tg.set_default_dtype(former)


def make(name, parameters, **options):
    tensors = {key: v if isinstance(v, int) else tg.tensor(v) for key, v in parameters.items()}
    return getattr(d, name)(**tensors, **options)


def moves(case):
    """Return whether samples move with the parameters and have a mean to compare."""
    return getattr(d, case["name"]).has_rsample and case["name"] != "Cauchy"


def label(case):
    return f"{case['name']}-{'-'.join(case['parameters'])}"


@pytest.mark.parametrize("case", CASES, ids=label)
def test_numbers(case):
    made = make(case["name"], case["parameters"])
    value = tg.tensor(case["values"])
    assert_close(made.log_prob(value), case["log_prob"])
    for name in ("mean", "variance", "stddev", "mode"):
        if case[name] is not None and not (name == "mode" and case["name"] == "Dirichlet"):
            assert_close(getattr(made, name), case[name])
    if case["entropy"] is not None:
        assert_close(made.entropy(), case["entropy"])
    if case["cdf"] is not None and case["name"] not in ("Beta",):
        assert_close(made.cdf(value), case["cdf"])
    if case["icdf"] is not None:
        assert_close(made.icdf(tg.tensor(GOLDEN["quantiles"])), case["icdf"])


@pytest.mark.parametrize("case", GOLDEN["expressions"], ids=lambda case: case["expression"])
def test_transforms_and_mixtures(case):
    made, value = eval(case["expression"], {"d": d, "t": tg.tensor}), tg.tensor(case["values"])
    assert list(made.batch_shape) == case["batch_shape"] and list(made.event_shape) == case["event_shape"]
    assert_close(made.log_prob(value), case["log_prob"])
    for name in ("mean", "variance"):
        if case[name] is not None:
            assert_close(getattr(made, name), case[name])
    if case["cdf"] is not None:
        assert_close(made.cdf(value), case["cdf"])
    if case["icdf"] is not None:
        assert_close(made.icdf(tg.tensor([[0.1], [0.9]])), case["icdf"])
    drawn = made.sample((3000,))
    assert drawn.shape == (3000, *made.batch_shape, *made.event_shape) and bool(made.support.check(drawn).all())
    if case["mean"] is not None:
        np.testing.assert_allclose(drawn.numpy().mean(0), made.mean.numpy(), atol=0.3)
    wide = made.expand((2, *made.batch_shape)) if isinstance(made, d.TransformedDistribution) else made
    assert wide.event_shape == made.event_shape and wide.batch_shape[-len(made.batch_shape) or 9 :] == made.batch_shape


def test_a_transform_and_its_inverse_undo_each_other():
    x = tg.linspace(-2.0, 2.0, 9)
    parts = [d.AffineTransform(0.5, 2.0), d.SoftplusTransform(), d.PowerTransform(0.5), d.ExpTransform()]
    for transform in (d.ComposeTransform(parts), *parts[:2], d.TanhTransform(), d.SigmoidTransform()):
        y = transform(x)
        np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(transform.inv.inv(x).numpy(), y.numpy())
        slope = tg.autograd.functional.jacobian(transform, x).diagonal()
        assert_close(transform.log_abs_det_jacobian(x, y), np.log(np.abs(slope.numpy())))
        assert_close(transform.inv.log_abs_det_jacobian(y, x), -np.log(np.abs(slope.numpy())))


@pytest.mark.parametrize("case", GOLDEN["transforms"], ids=lambda case: case["expression"])
def test_transforms_of_events_and_to_constraints(case):
    made, x = eval(case["expression"], {"d": d, "t": tg.tensor}), tg.tensor(case["values"])
    y = made(x)
    assert_close(y, case["result"])
    assert bool(made.codomain.check(y).all())
    assert_close(made.inv(y), case["inverse"])
    assert list(made.forward_shape(x.shape)) == case["shape"] and made.inverse_shape(y.shape) == x.shape
    if case["log_abs_det"] is not None:
        assert_close(made.log_abs_det_jacobian(x, y), case["log_abs_det"])
        assert_close(made.inv.log_abs_det_jacobian(y, x), -np.array(case["log_abs_det"]))


def test_transforms_to_constraints_can_be_added():
    whole = d.constraints.integer_interval(0, 3)
    with pytest.raises(NotImplementedError, match="no transform to whole numbers from 0 to 3"):
        d.biject_to(whole)
    with pytest.raises(TypeError, match="a constraint or a class"):
        d.biject_to.register("positive", d.ExpTransform)

    registry = type(d.transform_to)()
    registry.register(whole)(lambda constraint: d.ExpTransform())
    assert isinstance(registry(whole), d.ExpTransform)


def test_gradients_go_through_transforms():
    loc = tg.tensor(0.5, requires_grad=True)
    made = d.TransformedDistribution(d.Normal(loc, 1.0), [d.TanhTransform()])
    drawn = made.rsample((100,))
    (made.log_prob(drawn) + drawn).mean().backward()
    assert np.isfinite(loc.grad.item()) and loc.grad.item() != 0


def test_mixtures_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="each of the components"):
        d.MixtureSameFamily(d.Categorical(tg.ones(3)), d.Normal(tg.zeros(2), 1.0))
    with pytest.raises(ValueError, match="exactly one of covariance_matrix"):
        d.MultivariateNormal(tg.zeros(2))
    with pytest.raises(ValueError, match="lower triangular"):
        d.MultivariateNormal(tg.zeros(2), scale_tril=-tg.eye(2))


@pytest.mark.parametrize("case", GOLDEN["pairs"], ids=lambda case: f"{case['pair'][0]}-{case['pair'][2]}")
def test_divergences(case):
    assert_close(d.kl_divergence(make(*case["pair"][:2]), make(*case["pair"][2:])), case["divergence"])


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
    if case["name"] == "Cauchy":  # which has no mean
        np.testing.assert_allclose(np.median(drawn.numpy(), 0), case["parameters"]["loc"], atol=0.05)
        return
    mean, spread = made.mean.numpy(), made.stddev.numpy()
    np.testing.assert_allclose(drawn.numpy().mean(0), mean, atol=5 * spread.max() / math.sqrt(DRAWN) + 1e-12)
    if case["name"] != "LogNormal":  # its variance is slow to show
        np.testing.assert_allclose(drawn.numpy().std(0), spread, rtol=0.1, atol=1e-9)


@pytest.mark.parametrize("case", [case for case in CASES if moves(case)], ids=label)
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


def test_which_matrices_are_positive_definite():
    matrices = tg.tensor([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]], [[2.0, 1.0], [0.0, 2.0]]])
    assert d.constraints.positive_definite.check(matrices).tolist() == [True, False, False]


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


def test_a_transform_remembers_its_last_value():
    base, far = d.Normal(tg.zeros(3), 1.0), tg.tensor([0.5, 20.0, -30.0])
    made = d.TransformedDistribution(base, [d.TanhTransform(cache_size=1)])
    value = made.transforms[0](far)
    assert value.tolist()[1:] == [1, -1] and made.transforms[0].inv(value) is far
    exact = base.log_prob(far) - made.transforms[0].log_abs_det_jacobian(far, value)
    assert made.log_prob(value).tolist() == exact.tolist() and tg.isfinite(exact).all()
    assert not tg.isfinite(d.TransformedDistribution(base, d.TanhTransform()).log_prob(value)).all()
    with pytest.raises(ValueError, match="cache_size must be 0 or 1, and you gave 2"):
        d.ExpTransform(cache_size=2)


def test_transforms_of_ones_own():
    class Cube(d.transforms.Transform):
        def _call(self, x):
            return x**3

        def _inverse(self, y):
            return y.abs() ** (1 / 3) * y.sign()

        def log_abs_det_jacobian(self, x, y):
            return tg.log(3 * x * x)

    made = d.TransformedDistribution(d.Normal(0.0, 1.0), [Cube(), d.AffineTransform(0.0, 2.0)])
    expected = d.Normal(0.0, 1.0).log_prob(tg.tensor(0.5)) - math.log(3 * 0.25) - math.log(2)
    assert abs(float(made.log_prob(tg.tensor(0.25)) - expected)) < 1e-6
