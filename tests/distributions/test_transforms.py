"""Transforms: PyTorch's numbers, inverses, derivatives, and distributions of transformed values."""

import math

import numpy as np
import pytest
import telegrad as tg
from helpers.distributions import GOLDEN
from helpers.golden import assert_close
from telegrad import distributions as d


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


def test_every_transform_has_pytorchs_path():
    from telegrad.distributions import constraints, kl, transforms

    assert transforms.ExpTransform is d.ExpTransform and kl.kl_divergence is d.kl_divergence
    assert d.transforms.identity_transform(tg.ones(2)).tolist() == [1, 1]
    assert constraints.positive.check(tg.tensor([0.0, 1.0])).tolist() == [False, True]


def test_transforms_are_equal_by_class_and_parameters():
    assert d.AffineTransform(0.0, tg.tensor([1.0, 2.0])) == d.AffineTransform(0.0, tg.tensor([1.0, 2.0]))
    assert d.AffineTransform(0.0, 1.0) != d.AffineTransform(0.0, 2.0)
    assert d.ExpTransform() == d.ExpTransform(cache_size=1) and d.ExpTransform() != d.TanhTransform()
    assert d.ComposeTransform([d.ExpTransform().inv]) == d.ComposeTransform([d.ExpTransform().inv])


def test_events_of_other_dimensions():
    base = d.Normal(tg.zeros(3, 6), 1.0)
    made = d.TransformedDistribution(base, [d.ReshapeTransform((6,), (2, 3)), d.AffineTransform(1.0, 2.0)])
    assert (made.batch_shape, made.event_shape) == ((3,), (2, 3))
    value = made.rsample((4,))
    assert made.log_prob(value).shape == (4, 3)
    assert made.expand((5, 3)).sample().shape == (5, 3, 2, 3)
    expected = base.log_prob(((value - 1) / 2).reshape(4, 3, 6)).sum(-1) - 6 * math.log(2)
    assert_close(made.log_prob(value), expected.numpy())
    with pytest.raises(ValueError, match="2 dimensions"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), d.LowerCholeskyTransform())
    with pytest.raises(ValueError, match="maps 1 dimensions to 2"):
        _ = d.CorrCholeskyTransform().event_dim


def test_parameters_of_transforms_widen_the_batch():
    made = d.TransformedDistribution(d.Normal(0.0, 1.0), d.AffineTransform(tg.zeros(3), 2.0))
    assert made.batch_shape == (3,) and made.sample((2,)).shape == (2, 3)


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: d.ReshapeTransform((2, 2), (3,)), "unequal numbers of elements"),
        (lambda: d.ReshapeTransform((2, 2), (4,))(tg.ones(3)), "an event has shape"),
        (lambda: d.CorrCholeskyTransform()(tg.ones(2)), "does not fill"),
        (lambda: d.CorrCholeskyTransform().inverse_shape((2, 3)), "square matrices"),
        (lambda: d.CatTransform([d.ExpTransform()], lengths=[1, 2]), "needs a length for each"),
        (lambda: d.StackTransform([d.ExpTransform()], dim=2)(tg.ones(2)), "takes parts of dimension 2"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(act, message):
    with pytest.raises(ValueError, match=message):
        act()
