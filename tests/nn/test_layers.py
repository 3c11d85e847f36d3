"""Layers, losses, initialisation and utilities: gradients, defaults, errors. Values are in tests/nn/test_golden.py."""

import math

import numpy as np
import pytest
from telegrad import nn
from telegrad.base.errors import AutogradError
from telegrad.core import arange, autograd, manual_seed, no_grad, ones, randn, tensor, zeros

F = nn.functional


@pytest.fixture(autouse=True)
def _seeded():
    manual_seed(7)


def floats(*shape):
    return randn(*shape, dtype="float64", requires_grad=True)


CLASSES = tensor([0, 2, 1])


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.Linear(3, 2), (4, 3)),
        (nn.Linear(3, 2, bias=False), (2, 4, 3)),
        (nn.LayerNorm(3), (4, 3)),
        (nn.LayerNorm((2, 3), bias=False), (4, 2, 3)),
        (nn.Tanh(), (3, 2)),
        (nn.Sigmoid(), (3, 2)),
        (nn.Softmax(dim=-1), (3, 4)),
        (nn.LogSoftmax(dim=0), (3, 4)),
        (nn.Flatten(), (2, 3, 2)),
        (nn.Identity(1, two=2), (2,)),
        (nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2), nn.LogSoftmax(1)), (4, 3)),
    ],
    ids=str,
)
def test_gradients_of_modules(module, shape):
    module.double()
    parameters = list(module.parameters())

    def through(x, *values):
        return module(x)

    x = floats(*shape)
    assert autograd.gradcheck(through, (x, *parameters))
    assert autograd.gradgradcheck(through, (x, *parameters))


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: nn.CrossEntropyLoss(weight=tensor([1.0, 2.0, 0.5], dtype="float64"))(x, CLASSES),
        lambda x: nn.CrossEntropyLoss(label_smoothing=0.1, reduction="none")(x, CLASSES),
        lambda x: nn.NLLLoss(ignore_index=1)(x, CLASSES),
        lambda x: nn.MSELoss(reduction="sum")(x, ones(3, 3, dtype="float64")),
        lambda x: nn.L1Loss()(x, ones(3, 3, dtype="float64")),
        lambda x: nn.BCEWithLogitsLoss(pos_weight=tensor([1.0, 2.0, 3.0], dtype="float64"))(x, ones(3, 3) * 0.3),
        lambda x: F.softplus(x),
        lambda x: F.embedding(tensor([[0, 1, 1]]), x, padding_idx=0, scale_grad_by_freq=False)[:, 1:],
    ],
)
def test_gradients_of_losses(loss):
    assert autograd.gradcheck(loss, (floats(3, 3),))
    assert autograd.gradgradcheck(loss, (floats(3, 3),))


def test_scaling_by_frequency_is_recorded_for_second_derivatives():
    table = floats(4, 2)
    out = F.embedding(tensor([0, 1, 1, 3]), table, padding_idx=3, scale_grad_by_freq=True)
    (grad,) = autograd.grad((out * out).sum(), table, create_graph=True)
    expected = 2 * table.detach().numpy() * np.array([[1], [1], [0], [0]])
    np.testing.assert_allclose(grad.detach().numpy(), expected)
    assert grad.requires_grad


# -- initialisation


def test_linear_starts_uniform_within_the_root_of_its_inputs():
    layer = nn.Linear(16, 2000)
    for parameter in layer.parameters():
        values = parameter.detach().numpy()
        assert np.abs(values).max() <= 0.25 and abs(values.std() - 0.25 / math.sqrt(3)) < 0.01


def test_embedding_starts_normal():
    layer = nn.Embedding(2000, 5, padding_idx=-2)
    assert not layer.weight.detach().numpy()[1998].any() and layer.padding_idx == 1998
    assert abs(layer.weight.detach().numpy().std() - 1) < 0.05


@pytest.mark.parametrize(
    "fill, kwargs, std",
    [
        (nn.init.xavier_uniform_, {"gain": 2.0}, 2 * math.sqrt(2 / (200 + 300))),
        (nn.init.xavier_normal_, {}, math.sqrt(2 / (200 + 300))),
        (nn.init.kaiming_uniform_, {"nonlinearity": "relu"}, math.sqrt(2 / 300)),
        (nn.init.kaiming_uniform_, {"a": math.sqrt(5)}, math.sqrt(1 / 3 / 300)),
        (nn.init.kaiming_normal_, {"mode": "fan_out"}, math.sqrt(2 / 200)),
        (nn.init.normal_, {"mean": 0.0, "std": 3.0}, 3),
        (nn.init.uniform_, {"a": -1.0, "b": 1.0}, 1 / math.sqrt(3)),
    ],
)
def test_fills(fill, kwargs, std):
    weight = nn.Parameter(zeros(200, 300))
    assert fill(weight, **kwargs) is weight and weight.is_leaf and weight.requires_grad
    values = weight.detach().numpy()
    assert abs(values.std() / std - 1) < 0.02 and abs(values.mean()) < 0.05 * std


def test_constant_fills():
    weight = nn.Parameter(zeros(2))
    assert nn.init.ones_(weight).tolist() == [1, 1]
    assert nn.init.constant_(weight, 0.5).tolist() == [0.5, 0.5]
    assert nn.init.zeros_(weight).tolist() == [0, 0]


def test_seeds_give_equal_models():
    first = manual_seed(3) and nn.Linear(4, 4)
    second = manual_seed(3) and nn.Linear(4, 4)
    np.testing.assert_array_equal(first.weight.detach().numpy(), second.weight.detach().numpy())


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_layers_without_elements(shape):
    layer = nn.Linear(*shape)
    assert layer(zeros(2, shape[0])).shape == (2, shape[1])


# -- behaviour


def test_dropout():
    layer, x = nn.Dropout(0.25), ones(4000, requires_grad=True)
    out = layer(x)
    values = out.detach().numpy()
    assert set(np.unique(values).round(4)) == {0, np.float32(1 / 0.75).round(4)} and abs(values.mean() - 1) < 0.05
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)
    assert layer.eval()(x) is x
    y = ones(5)
    assert nn.Dropout(1.0, inplace=True)(y) is y and not y.numpy().any()


def test_relu_in_place():
    x = tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x and x.tolist() == [0, 2]


def test_embedding_shortens_long_rows():
    layer = nn.Embedding(3, 2, max_norm=1.0, _weight=tensor([[3.0, 4.0], [6.0, 8.0], [0.1, 0.1]]))
    layer(tensor([0, 2]))
    np.testing.assert_allclose(layer.weight.detach().numpy(), [[0.6, 0.8], [6, 8], [0.1, 0.1]], rtol=1e-6)


def test_embedding_from_pretrained():
    layer = nn.Embedding.from_pretrained(arange(6.0).reshape(3, 2))
    assert not layer.weight.requires_grad and layer(tensor([2])).tolist() == [[4, 5]]
    assert nn.Embedding.from_pretrained(zeros(3, 2), freeze=False).weight.requires_grad


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda: nn.Linear(3, 2)(zeros(4, 4)), ValueError, r"weight of shape \(2, 3\) .* input of shape \(4, 4\)"),
        (lambda: nn.Embedding(3, 2)(tensor([3])), IndexError, "row 3, outside 0..2"),
        (lambda: nn.Embedding(3, 2)(zeros(1)), TypeError, "index of integers"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "within the 3 rows"),
        (lambda: nn.Embedding(3, 2, _weight=zeros(2, 2)), ValueError, r"must have shape \(3, 2\), not \(2, 2\)"),
        (lambda: nn.Embedding.from_pretrained(zeros(2)), ValueError, "two dimensions"),
        (lambda: nn.Dropout(1.5), ValueError, "probability between 0 and 1"),
        (lambda: nn.LayerNorm(3)(zeros(2, 4)), ValueError, r"last dimensions must be normalized_shape \(3,\)"),
        (lambda: nn.MSELoss(reduction="avg"), ValueError, 'reduction must be "mean", "sum" or "none"'),
        (lambda: nn.MSELoss()(zeros(2), zeros(3)), ValueError, "one shape"),
        (lambda: nn.BCEWithLogitsLoss()(zeros(2), zeros(3)), ValueError, r"input's shape \(2,\), not \(3,\)"),
        (lambda: nn.CrossEntropyLoss()(zeros(2, 3), tensor([0, 3])), IndexError, "target 3 is not a class"),
        (lambda: nn.init.xavier_uniform_(zeros(3)), ValueError, "at least two dimensions"),
        (lambda: nn.init.kaiming_uniform_(zeros(3, 3), mode="in"), ValueError, '"fan_in" or "fan_out"'),
        (lambda: nn.init.calculate_gain("step"), ValueError, "nonlinearity must be one of leaky_relu, .*'step'"),
    ],
)
def test_misuse_is_told(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_deprecated_arguments_warn():
    with pytest.warns(UserWarning, match='reduction="sum"'):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match='reduction="none"'):
        assert F.l1_loss(zeros(2), ones(2), reduce=False).tolist() == [1, 1]
    with pytest.warns(UserWarning, match="write dim=1"):
        nn.Softmax()(zeros(2, 2))


# -- utilities


def with_grads(*grads):
    parameters = [nn.Parameter(zeros(len(grad))) for grad in grads]
    for parameter, grad in zip(parameters, grads):
        parameter.grad = tensor(grad)
    return parameters


@pytest.mark.parametrize("norm_type, norm", [(2.0, 13.0), (1.0, 19.0), (float("inf"), 12.0)])
def test_clipping_the_norm(norm_type, norm):
    parameters = [*with_grads([3.0, 4.0], [12.0]), nn.Parameter(zeros(2))]
    assert math.isclose(nn.utils.clip_grad_norm_(parameters, 1.0, norm_type).item(), norm, rel_tol=1e-6)
    np.testing.assert_allclose(parameters[0].grad.numpy(), np.array([3, 4]) / norm, rtol=1e-5)
    assert nn.utils.clip_grad_norm_(parameters, 100.0).item() < 1.1
    np.testing.assert_allclose(parameters[1].grad.numpy(), np.array([12]) / norm, rtol=1e-5)
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0


def test_clipping_what_is_not_finite():
    (parameter,) = with_grads([float("nan"), 1.0])
    with pytest.raises(AutogradError, match=r"norm of order 2\.0 is nan"):
        nn.utils.clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)
    nn.utils.clip_grad_norm_(parameter, 1.0)
    assert np.isnan(parameter.grad.numpy()).all()


def test_clipping_values():
    (parameter,) = with_grads([-3.0, 0.5, 2.0])
    nn.utils.clip_grad_value_(parameter, 1.0)
    assert parameter.grad.tolist() == [-1, 0.5, 1]


def test_parameters_as_a_vector():
    net = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (9,) and vector.requires_grad
    nn.utils.vector_to_parameters(arange(9.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and net.bias.tolist() == [6, 7, 8]
    with pytest.raises(ValueError, match=r"have 9 elements, and the vector has shape \(8,\)"):
        nn.utils.vector_to_parameters(zeros(8), net.parameters())
    with pytest.raises(TypeError, match="takes a tensor, not list"):
        nn.utils.vector_to_parameters([1.0], net.parameters())


def test_a_network_learns():
    x = randn(256, 2)
    y = tensor((x.numpy()[:, 0] * x.numpy()[:, 1] > 0).astype(np.int64))
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    for _ in range(300):
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        with no_grad():
            for parameter in net.parameters():
                parameter -= parameter.grad
    assert (net(x).argmax(1) == y).numpy().mean() > 0.95
