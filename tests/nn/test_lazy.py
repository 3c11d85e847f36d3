"""Layers that learn from their first input how many features it has."""

import copy
import inspect
import pickle

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn

CASES = [
    (nn.LazyLinear, (3,), {}, nn.Linear, (2, 4), "in_features"),
    (nn.LazyLinear, (3, False), {}, nn.Linear, (2, 5, 4), "in_features"),
    (nn.LazyConv1d, (4, 2), {"groups": 2}, nn.Conv1d, (2, 6, 5), "in_channels"),
    (nn.LazyConv2d, (3, 2), {"stride": 2, "bias": False}, nn.Conv2d, (6, 5, 5), "in_channels"),
    (nn.LazyConv3d, (1, 2), {}, nn.Conv3d, (1, 2, 3, 3, 3), "in_channels"),
    (nn.LazyConvTranspose1d, (2, 3), {}, nn.ConvTranspose1d, (1, 4, 5), "in_channels"),
    (nn.LazyConvTranspose2d, (4, 2), {"groups": 2}, nn.ConvTranspose2d, (1, 6, 2, 2), "in_channels"),
    (nn.LazyConvTranspose3d, (2, 2), {}, nn.ConvTranspose3d, (1, 3, 2, 2, 2), "in_channels"),
    (nn.LazyBatchNorm1d, (), {"momentum": 0.3}, nn.BatchNorm1d, (4, 3), "num_features"),
    (nn.LazyBatchNorm2d, (), {"affine": False}, nn.BatchNorm2d, (2, 3, 2, 2), "num_features"),
    (nn.LazyBatchNorm3d, (), {"track_running_stats": False}, nn.BatchNorm3d, (2, 3, 2, 2, 1), "num_features"),
    (nn.LazyInstanceNorm1d, (), {"affine": True}, nn.InstanceNorm1d, (3, 4), "num_features"),
    (nn.LazyInstanceNorm2d, (), {"track_running_stats": True}, nn.InstanceNorm2d, (2, 3, 2, 2), "num_features"),
    (nn.LazyInstanceNorm3d, (), {}, nn.InstanceNorm3d, (2, 3, 2, 2, 2), "num_features"),
]


@pytest.mark.parametrize(("lazy", "args", "kwargs", "ordinary", "shape", "count"), CASES, ids=lambda each: str(each))
def test_it_becomes_the_ordinary_layer(lazy, args, kwargs, ordinary, shape, count):
    layer = lazy(*args, **kwargs)
    assert isinstance(layer, ordinary) and layer.has_uninitialized_params() and getattr(layer, count) == 0
    before = list(layer.parameters())
    x = tg.randn(*shape)
    out = layer(x)
    assert type(layer) is ordinary and getattr(layer, count) in shape
    assert all(one is other for one, other in zip(before, layer.parameters(), strict=True))
    assert all(type(each) is nn.Parameter for each in layer.parameters())
    again = ordinary(getattr(layer, count), *args, **kwargs)
    again.load_state_dict(layer.state_dict())
    assert repr(layer) == repr(again) and out.shape == again(x).shape
    assert layer.state_dict().keys() == again.state_dict().keys()


@pytest.mark.parametrize(("lazy", "args", "kwargs", "ordinary", "shape", "count"), CASES, ids=lambda each: str(each))
def test_it_becomes_what_a_state_is_of(lazy, args, kwargs, ordinary, shape, count):
    trained, fresh = lazy(*args, **kwargs), lazy(*args, **kwargs)
    trained(tg.randn(*shape))
    fresh.load_state_dict(trained.state_dict())
    if trained.state_dict():
        assert type(fresh) is ordinary
    for name, value in trained.state_dict().items():
        np.testing.assert_array_equal(fresh.state_dict()[name].numpy(), value.numpy())


def test_an_optimizer_may_hold_the_parameters_before():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
    tg.manual_seed(0)
    x = tg.randn(8, 3)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2 and model[0].in_features == 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_are_lazy_too(copied):
    layer = copied(nn.LazyLinear(2).eval().to(tg.float64))
    assert type(layer) is nn.LazyLinear and not layer.training
    assert layer(tg.ones(1, 3, dtype=tg.float64)).dtype == "float64" and layer.weight.shape == (2, 3)
    assert copied(layer).weight.shape == (2, 3)


def test_a_lazy_state_leaves_a_lazy_layer_lazy():
    layer = nn.LazyLinear(2)
    layer.load_state_dict(nn.LazyLinear(2).state_dict())
    assert type(layer) is nn.LazyLinear


def test_uninitialized_tensors_get_memory():
    parameter = nn.UninitializedParameter(dtype=tg.float64)
    parameter.materialize((2, 3))
    assert type(parameter) is nn.Parameter and parameter.shape == (2, 3) and parameter.dtype == "float64"
    buffer = nn.UninitializedBuffer()
    buffer.materialize((2,), dtype=tg.int64)
    assert type(buffer) is tg.Tensor and buffer.dtype == "int64" and not buffer.requires_grad


def test_arguments_are_those_of_the_ordinary_class():
    assert list(inspect.signature(nn.LazyLinear).parameters) == ["out_features", "bias", "device", "dtype"]
    with pytest.raises(TypeError, match="missing a required argument: 'out_features'"):
        nn.LazyLinear()
    with pytest.raises(ValueError, match="groups=2 must divide"):
        nn.LazyConv1d(4, 1, groups=2)(tg.ones(1, 3, 2))
