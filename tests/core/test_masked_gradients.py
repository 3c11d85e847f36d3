"""Gradient rules choose by a mask, never multiply: an infinite gradient of an element that takes no part gives no nan."""

from __future__ import annotations

import numpy as np
import pytest
import telegrad as tg
from telegrad.nn import functional as F

INF = float("inf")
LINE = [-7.0, -2.0, -0.5, 0.0, 0.5, 2.0, 7.0]
SCORES = [[4.0, 1.0, 2.0], [1.0, 5.0, 0.5], [2.0, 0.5, 6.0]]
PLACES = [0, 0, 1, 1, 2, 2, 2]
SIGNS = [1, -1, 1, -1, -1, -1, 1]


def image(*shape):
    return (np.arange(float(np.prod(shape))).reshape(shape) % 7 - 3).tolist()


def scattered(reduce, **options):
    return lambda x: tg.zeros(7, dtype=x.dtype).scatter_reduce(0, tg.tensor(PLACES), x, reduce, **options)


CASES = {
    "relu": (F.relu, LINE),
    "relu6": (F.relu6, LINE),
    "hardtanh": (F.hardtanh, LINE),
    "hardsigmoid": (F.hardsigmoid, LINE),
    "hardswish": (F.hardswish, LINE),
    "softshrink": (F.softshrink, LINE),
    "hardshrink": (F.hardshrink, LINE),
    "threshold": (lambda x: F.threshold(x, 0.1, 20.0), LINE),
    "clamp": (lambda x: x.clamp(-1, 1), LINE),
    "clamp by tensors": (lambda x: x.clamp(tg.tensor(-1.0), tg.tensor(1.0)), LINE),
    "lower bounds": (lambda low: tg.tensor(LINE, dtype=low.dtype).clamp(low), [0.0] * 7),
    "upper bounds": (lambda high: tg.tensor(LINE, dtype=high.dtype).clamp(max=high), [0.0] * 7),
    "max": (lambda x: x.max(), LINE),
    "min": (lambda x: x.min(), LINE),
    "median": (lambda x: x.median(), LINE),
    "nanmedian": (lambda x: x.nanmedian(), LINE),
    "where": (lambda x: tg.where(x > 0, x, 1.0), LINE),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 1.0), LINE),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), image(1, 1, 6)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), image(1, 1, 4, 4)),
    "overlapping max_pool2d": (lambda x: F.max_pool2d(x, 3, 1), image(1, 1, 4, 4)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), image(1, 1, 2, 4, 4)),
    "scatter amax": (scattered("amax"), LINE),
    "scatter amin": (scattered("amin", include_self=False), LINE),
    "index_reduce": (
        lambda x: tg.zeros(7, dtype=x.dtype).index_reduce(0, tg.tensor(PLACES), x, "amax", include_self=False),
        LINE,
    ),
    "nll": (lambda x: F.nll_loss(x, tg.tensor([0, 2, -100])), SCORES),
    "nll, all ignored": (lambda x: F.nll_loss(x, tg.tensor([-100, -100, -100])), SCORES),
    "cross entropy, all ignored": (lambda x: F.cross_entropy(x, tg.tensor([-100, -100, -100])), SCORES),
    "label smoothing, all ignored": (
        lambda x: F.cross_entropy(x, tg.tensor([-100, -100, -100]), label_smoothing=0.1, reduction="sum"),
        SCORES,
    ),
    "multi_margin": (lambda x: F.multi_margin_loss(x, tg.tensor([0, 1, 2]), reduction="none"), SCORES),
    "hinge": (lambda x: F.hinge_embedding_loss(x, tg.tensor(SIGNS), reduction="none"), LINE),
    "ranking": (
        lambda x: F.margin_ranking_loss(x, tg.zeros(7, dtype=x.dtype), tg.tensor(SIGNS), reduction="none"),
        LINE,
    ),
    "padding of embedding": (lambda w: F.embedding(tg.tensor([0, 1]), w, padding_idx=1), SCORES),
    "nansum": (lambda x: x.nansum(), [1.0, float("nan"), 2.0]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_an_infinite_gradient(name, dtype):
    function, values = CASES[name]
    x = tg.tensor(np.array(values, dtype), requires_grad=True)
    gradients = []
    for weight in (1.0, INF):
        result = function(x)
        (grad,) = tg.autograd.grad(result, x, tg.full(result.shape, weight, dtype=result.dtype))
        gradients.append(grad.numpy())
    usual, infinite = gradients
    assert not np.isnan(infinite).any()
    # Of several windows' gradients that cancel, only the sum is finite.
    assert ((infinite == 0) == (usual == 0)).all()


@pytest.mark.parametrize("name", ["relu", "clamp", "max", "where", "hardtanh"])
def test_a_recorded_pass_chooses_too(name):
    function, values = CASES[name]
    x = tg.tensor(values, dtype=tg.float64, requires_grad=True)
    result = function(x)
    weights = tg.full(result.shape, INF, dtype=tg.float64)
    (grad,) = tg.autograd.grad(result, x, weights, create_graph=True)
    assert not np.isnan(grad.detach().numpy()).any()


def test_a_root_of_what_was_clamped():
    x = tg.tensor([-1.0, 4.0], requires_grad=True)
    x.clamp(min=0).sqrt().sum().backward()
    assert x.grad.tolist() == [0, 0.25]


def test_rows_that_are_ignored():
    x = tg.tensor(SCORES, requires_grad=True)
    losses = F.cross_entropy(x, tg.tensor([0, 2, -100]), reduction="none")
    (grad,) = tg.autograd.grad(losses, x, tg.tensor([1.0, 1.0, INF]))
    assert np.isfinite(grad.numpy()).all() and grad[2].tolist() == [0, 0, 0]
