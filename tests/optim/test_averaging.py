"""Averages of parameters over training, and what batch normalisations make of them."""

import copy

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.nn.utils import (
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


def trained(model, values):
    """The model at each of several points of its training."""
    for value in values:
        with tg.no_grad():
            for parameter in model.parameters():
                parameter.fill_(value)
        yield model


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 3.0),
        ({"avg_fn": get_swa_avg_fn()}, 3.0),
        ({"multi_avg_fn": get_swa_multi_avg_fn()}, 3.0),
        ({"avg_fn": get_ema_avg_fn(0.5)}, 0.25 * 1 + 0.25 * 2 + 0.5 * 6),
        ({"multi_avg_fn": get_ema_multi_avg_fn(0.5)}, 0.25 * 1 + 0.25 * 2 + 0.5 * 6),
    ],
)
def test_parameters_are_averaged(options, expected):
    model = nn.Linear(2, 1)
    averaged = AveragedModel(model, **options)
    for _ in trained(model, (1.0, 2.0, 6.0)):
        averaged.update_parameters(model)
    assert averaged.n_averaged.item() == 3
    np.testing.assert_allclose(averaged(tg.ones(1, 2)).detach().numpy(), [[3 * expected]], rtol=1e-6)
    assert model.weight.tolist() == [[6, 6]], "the model itself stays"
    assert set(averaged.state_dict()) == {"n_averaged", "module.weight", "module.bias"}


@pytest.mark.parametrize(("use_buffers", "expected"), [(False, 4.0), (True, 3.0)])
def test_buffers_are_copied_or_averaged(use_buffers, expected):
    model = nn.BatchNorm1d(1)
    averaged = AveragedModel(model, use_buffers=use_buffers)
    for mean in (2.0, 4.0):
        model.running_mean.fill_(mean)
        averaged.update_parameters(model)
    assert averaged.module.running_mean.item() == expected


def test_statistics_are_computed_anew():
    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval()
    batches = [tg.randn(4, 3) for _ in range(3)]
    update_bn(batches[:1], model)
    update_bn([(batch, None) for batch in batches], model)
    hidden = [model[0](batch).detach().numpy() for batch in batches]
    np.testing.assert_allclose(model[1].running_mean.numpy(), np.mean([h.mean(0) for h in hidden], 0), rtol=1e-5)
    np.testing.assert_allclose(model[1].running_var.numpy(), np.mean([h.var(0, ddof=1) for h in hidden], 0), rtol=1e-5)
    assert model[1].momentum == 0.1 and not model.training


def test_a_model_without_statistics_is_not_run():
    model = nn.Linear(1, 1)
    before = copy.deepcopy(model.state_dict())
    update_bn(["no tensor"], model)
    assert all((before[name] == value).all() for name, value in model.state_dict().items())


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="decay must be from 0 to 1, and you gave 2"):
        get_ema_avg_fn(2)
    with pytest.raises(ValueError, match="not both"):
        AveragedModel(nn.Linear(1, 1), avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())
    optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=0.1)
    with pytest.raises(ValueError, match='anneal_strategy must be "cos" or "linear"'):
        tg.optim.lr_scheduler.SWALR(optimizer, 0.1, anneal_strategy="log")
    with pytest.raises(ValueError, match="anneal_epochs must be at least 0"):
        tg.optim.lr_scheduler.SWALR(optimizer, 0.1, anneal_epochs=-1)
