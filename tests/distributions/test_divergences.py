"""Divergences: PyTorch's numbers, and those of exponential families by Bregman's formula."""

import pytest
import telegrad as tg
from helpers.distributions import CASES, GOLDEN, label, make
from helpers.golden import assert_close
from telegrad import distributions as d
from telegrad.distributions.exp_family import bregman_divergence

FAMILIES = [
    case for case in CASES if issubclass(getattr(d, case["name"]), d.ExponentialFamily) and case["name"] != "Chi2"
]


@pytest.mark.parametrize("case", GOLDEN["pairs"], ids=lambda case: f"{case['pair'][0]}-{case['pair'][2]}")
def test_divergences(case):
    assert_close(d.kl_divergence(make(*case["pair"][:2]), make(*case["pair"][2:])), case["divergence"])


@pytest.mark.parametrize("case", FAMILIES, ids=label)
def test_entropies_of_exponential_families(case):
    made = make(case["name"], case["parameters"])
    if case["entropy"] is not None:
        assert_close(d.ExponentialFamily.entropy(made), case["entropy"], 1e-9)


@pytest.mark.parametrize("case", FAMILIES, ids=label)
def test_divergences_of_exponential_families(case):
    leaves = {key: tg.tensor(v, requires_grad=True) for key, v in case["parameters"].items()}
    other = {key: v.detach() * 1.1 for key, v in leaves.items()}
    if {"probs", "scale_tril", "covariance_matrix"}.isdisjoint(other):
        other = {key: v + 0.25 for key, v in other.items()}
    p, q = (getattr(d, case["name"])(**each) for each in (leaves, other))
    found, known = bregman_divergence(p, q), d.kl_divergence(p, q)
    assert_close(found, known.numpy(force=True), 1e-7)
    given = list(leaves.values())
    expected = tg.autograd.grad(known.sum(), given, retain_graph=True)
    for slope, by_formula in zip(tg.autograd.grad(found.sum(), given), expected):
        assert_close(slope, by_formula.numpy(), 1e-6)


def test_a_family_of_ones_own():
    class Rate(d.ExponentialFamily):
        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, theta):
            return -tg.log(-theta)

    p, q = Rate(tg.tensor([0.5, 2.0])), Rate(tg.tensor([1.0, 1.0]))
    same = [d.Exponential(each.rate) for each in (p, q)]
    assert_close(p.entropy(), same[0].entropy().numpy())
    assert_close(d.kl_divergence(p, q), d.kl_divergence(*same).numpy())


@pytest.mark.parametrize(
    "p, q",
    [
        (lambda: d.LogNormal(0.0, 1.0), lambda: d.Normal(0.0, 1.0)),
        (lambda: d.Normal(0.0, 1.0), lambda: d.Poisson(1.0)),
        (lambda: d.Kumaraswamy(1.0, 2.0), lambda: d.Kumaraswamy(1.0, 3.0)),
        (lambda: d.Binomial(2, tg.tensor(0.5)), lambda: d.Binomial(3, tg.tensor(0.5))),
        (lambda: d.Independent(d.Normal(tg.zeros(2), 1.0), 1), lambda: d.Independent(d.Normal(tg.zeros(2), 1.0), 0)),
    ],
)
def test_pairs_without_a_formula(p, q):
    with pytest.raises(NotImplementedError, match="divergence of"):
        d.kl_divergence(p(), q())
