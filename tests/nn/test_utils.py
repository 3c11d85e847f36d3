"""nn.utils and nn.init: parametrizations, weight norms, total norms, and every fill's statistics."""

import copy
import math
import pickle

import numpy as np
import pytest
from telegrad import nn
from telegrad.base.errors import AutogradError
from telegrad.core import autograd, manual_seed, ones, randn, tensor, zeros
from telegrad.nn.utils import parametrizations, parametrize


@pytest.fixture(autouse=True)
def _seeded():
    manual_seed(3)


class Symmetric(nn.Module):
    def forward(self, x):
        return (x + x.mT) * 0.5

    def right_inverse(self, value):
        return value


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


def test_a_parametrized_weight_is_computed_from_another():
    layer = nn.Linear(3, 3)
    before = layer.weight.detach().numpy().copy()
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert type(layer) is nn.Linear and parametrize.is_parametrized(layer, "weight")
    np.testing.assert_allclose(layer.weight.detach().numpy(), (before + before.T) / 2)
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    layer.weight = ones(3, 3)
    assert layer.parametrizations.weight.original.tolist() == np.ones((3, 3)).tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight[0, 0].item() == 2  # Doubled has no right_inverse
    assert not parametrize.is_parametrized(parametrize.remove_parametrizations(layer, "weight"))
    assert isinstance(layer.weight, nn.Parameter) and layer.weight[0, 0].item() == 2
    assert sorted(layer.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_parametrized_modules_can_be_copied(duplicate):
    layer = parametrizations.weight_norm(nn.Linear(2, 2))
    other = duplicate(layer)
    np.testing.assert_array_equal(other.weight.detach().numpy(), layer.weight.detach().numpy())
    other.parametrizations.weight.original0.detach().mul_(2)
    assert not np.allclose(other.weight.detach().numpy(), layer.weight.detach().numpy())


def test_cached_values_are_computed_once():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    with parametrize.cached():
        with parametrize.cached():
            first = layer.weight
        assert layer.weight is first
    assert layer.weight is not first


def test_misuse_of_parametrizations_is_told():
    layer = nn.Linear(2, 3)
    with pytest.raises(ValueError, match=r"makes float32 \(3,\) of 'bias'|no parameter 'nothing'"):
        parametrize.register_parametrization(layer, "nothing", Doubled())
    with pytest.raises(ValueError, match=r"makes float32 \(6,\) of 'weight'"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))
    with pytest.raises(ValueError, match="no parametrized 'bias'"):
        parametrize.remove_parametrizations(layer, "bias")
    parametrizations.weight_norm(layer)
    with pytest.raises(ValueError, match="several tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    with pytest.raises(ValueError, match=r"has shape \(3, 1\), and would get \(2, 1\)"):
        layer.weight = ones(2, 2)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("new", [True, False])
def test_weight_norm(dim, new):
    layer = nn.Linear(3, 2).double()
    before = layer.weight.detach().numpy().copy()
    (parametrizations if new else nn.utils).weight_norm(layer, dim=dim)
    prefix = "parametrizations.weight.original" if new else "weight"
    lengths, directions = (prefix + "0", prefix + "1") if new else (prefix + "_g", prefix + "_v")
    state = layer.state_dict()
    assert set(state) == {"bias", lengths, directions}
    assert state[lengths].shape == {0: (2, 1), 1: (1, 3), None: ()}[dim]
    np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-12)
    assert autograd.gradcheck(
        lambda x, *_: layer(x), (randn(2, 3, dtype="float64", requires_grad=True), *layer.parameters())
    )
    if new:
        parametrize.remove_parametrizations(layer, "weight")
    else:
        nn.utils.remove_weight_norm(layer)
        with pytest.raises(ValueError, match="no weight_norm"):
            nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-12)
    assert isinstance(layer.weight, nn.Parameter) and set(layer.state_dict()) == {"bias", "weight"}


def test_weight_norm_twice_is_told():
    with pytest.raises(ValueError, match="has weight_norm already"):
        nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(1, 1)))


@pytest.mark.parametrize(
    "make", [lambda: nn.Linear(5, 4), lambda: nn.Conv2d(2, 3, 2), lambda: nn.ConvTranspose2d(2, 3, 2)]
)
def test_spectral_norm(make):
    layer = make()
    axis = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
    parametrizations.spectral_norm(layer, n_power_iterations=20)
    assert {"parametrizations.weight.original", "parametrizations.weight.0._u"} <= set(layer.state_dict())
    matrix = np.moveaxis(layer.weight.detach().numpy(), axis, 0).reshape(layer.weight.shape[axis], -1)
    assert abs(np.linalg.norm(matrix, 2) - 1) < 1e-3
    layer.eval()
    vector = layer.parametrizations.weight[0]._u.numpy().copy()
    layer.weight.sum().backward()
    np.testing.assert_array_equal(layer.parametrizations.weight[0]._u.numpy(), vector)
    assert layer.parametrizations.weight.original.grad is not None


def test_total_norm():
    tensors = [tensor([3.0]), tensor([[4.0]]), zeros(0)]
    assert nn.utils.get_total_norm(tensors).item() == 5
    assert nn.utils.get_total_norm(tensors, math.inf).item() == 4
    assert nn.utils.get_total_norm([]).item() == 0
    with pytest.raises(AutogradError, match="is inf"):
        nn.utils.get_total_norm(tensor([math.inf]), error_if_nonfinite=True)


# -- fills


def test_truncated_normal():
    weight = nn.init.trunc_normal_(zeros(4000), mean=1.0, std=2.0, a=0.0, b=2.0).numpy()
    assert weight.min() >= 0 and weight.max() <= 2 and abs(weight.mean() - 1) < 0.05
    narrow = nn.init.trunc_normal_(zeros(1000), a=3.0, b=3.5).numpy()
    assert narrow.min() >= 3 and narrow.max() <= 3.5
    assert nn.init.trunc_normal_(zeros(0)).shape == (0,)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal(shape):
    weight = nn.init.orthogonal_(zeros(*shape, dtype="float64"), gain=2.0).numpy().reshape(shape[0], -1)
    square = weight @ weight.T if len(weight) <= weight.shape[1] else weight.T @ weight
    np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-12)


def test_sparse():
    weight = nn.init.sparse_(zeros(10, 20), 0.25, std=1.0).numpy()
    assert ((weight == 0).sum(axis=0) == 3).all() and 0.8 < weight[weight != 0].std() < 1.2


def test_identities():
    assert nn.init.eye_(zeros(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    weight = nn.init.dirac_(nn.Parameter(randn(4, 2, 3, dtype="float64")), groups=2)
    x = randn(1, 4, 6, dtype="float64")
    np.testing.assert_array_equal(nn.functional.conv1d(x, weight, padding=1, groups=2).detach().numpy(), x.numpy())


@pytest.mark.parametrize("name", ["conv1d", "conv_transpose3d", "linear", "sigmoid"])
def test_gains_of_one(name):
    assert nn.init.calculate_gain(name) == 1


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: nn.init.orthogonal_(zeros(2)), r"orthogonal_\(\) needs at least two dimensions"),
        (lambda: nn.init.sparse_(zeros(2), 0.1), r"sparse_\(\) needs a matrix"),
        (lambda: nn.init.eye_(zeros(2)), r"eye_\(\) needs a matrix"),
        (lambda: nn.init.dirac_(zeros(2, 2)), "three to five dimensions"),
        (lambda: nn.init.dirac_(zeros(3, 2, 2), groups=2), "groups=2 must divide"),
    ],
)
def test_misuse_is_told(act, message):
    with pytest.raises(ValueError, match=message):
        act()
