"""Losses, activations, dropout and containers of parameters: what golden values do not show."""

import math

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.base.errors import AutogradError
from telegrad.core import autograd, ones, randn, tensor, zeros

F = nn.functional
pytestmark = pytest.mark.usefixtures("seeded")


# -- losses


def test_targets_of_another_shape_warn():
    with pytest.warns(UserWarning, match=r"\(3, 1\).*\(3,\).*\(3, 3\)"):
        assert F.mse_loss(zeros(3, 1), ones(3), reduction="none").shape == (3, 3)
    with pytest.raises(ValueError, match="one shape"):
        F.smooth_l1_loss(zeros(2), zeros(3))


def test_cross_entropy_of_extreme_scores():
    x = tensor([[1000.0, -1000.0], [float("-inf"), 0.0]], requires_grad=True)
    loss = F.cross_entropy(x, tensor([0, 1]), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [0, 0] and not x.grad.numpy().any()
    assert np.isnan(F.cross_entropy(x, tensor([-100, -100])).item())
    assert F.cross_entropy(x, tensor([-100, 1])).item() == 0


def test_binary_cross_entropy_of_certain_mistakes():
    x = tensor([0.0, 1.0, 0.5], dtype="float64", requires_grad=True)
    y = tensor([1.0, 0.0, 1.0], dtype="float64", requires_grad=True)
    loss = F.binary_cross_entropy(x, y, reduction="none")
    np.testing.assert_allclose(loss.detach().numpy(), [100, 100, np.log(2)])
    loss.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [-1e12, 1e12, -2])
    np.testing.assert_allclose(y.grad.numpy(), [-100 * -1, -100, 0], atol=1e-12)


def test_ctc_has_its_gradient_and_no_second_one():
    probabilities = randn(5, 2, 3, dtype="float64", requires_grad=True)

    def loss(x):
        return F.ctc_loss(F.log_softmax(x, 2), tensor([[1, 2], [2, 2]]), [5, 4], [2, 2], reduction="none")

    assert autograd.gradcheck(loss, (probabilities,))
    (grad,) = autograd.grad(loss(probabilities).sum(), probabilities)
    with pytest.raises(AutogradError, match="cannot be differentiated twice"):
        autograd.grad(loss(probabilities).sum(), probabilities, create_graph=True)
    assert grad.shape == (5, 2, 3)
    impossible = F.ctc_loss(F.log_softmax(randn(2, 1, 3), 2), tensor([[1, 1, 1]]), [2], [3])
    assert impossible.item() == float("inf")


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: F.ctc_loss(zeros(2, 1, 3), tensor([[3]]), [2], [1]), "must be from 0 to 2"),
        (lambda: F.ctc_loss(zeros(2, 1, 3), tensor([[1]]), [3], [1]), "at most 2"),
        (lambda: F.ctc_loss(zeros(2, 1, 3), tensor([[1]]), [2], [2]), "do not fit target_lengths"),
        (lambda: F.ctc_loss(zeros(2, 1, 3), tensor([[1]]), [2, 2], [1]), "input_lengths must be 1 integers"),
        (lambda: F.binary_cross_entropy(tensor([1.5]), tensor([1.0])), "between 0 and 1"),
        (lambda: F.gaussian_nll_loss(zeros(2), zeros(2), tensor([-1.0, 1.0])), "negative"),
        (lambda: F.gaussian_nll_loss(zeros(2, 2), zeros(2, 2), ones(3)), "var must have the input's shape"),
        (lambda: F.multi_margin_loss(zeros(2, 3), tensor([0, 3])), "classes from 0 to 2"),
        (lambda: F.multi_margin_loss(zeros(2, 3), tensor([0, 1]), p=3), "p must be 1 or 2"),
        (lambda: F.multilabel_margin_loss(zeros(1, 2), tensor([[2, -1]])), "classes below 2"),
        (lambda: F.triplet_margin_loss(zeros(1), zeros(1), zeros(1), margin=0.0), "margin must be positive"),
        (lambda: F.triplet_margin_loss(zeros(1), zeros(1, 1), zeros(1)), "as many dimensions"),
        (lambda: F.cosine_embedding_loss(zeros(2), zeros(2), ones(2)), r"need a target of shape \(N,\)"),
        (lambda: F.margin_ranking_loss(zeros(2), zeros(2), ones(1, 2)), "as many dimensions"),
        (lambda: F.huber_loss(zeros(1), zeros(1), delta=0.0), "delta must be positive"),
        (lambda: F.smooth_l1_loss(zeros(1), zeros(1), beta=-1.0), "beta must not be negative"),
        (lambda: F.cross_entropy(zeros(2, 3), tensor([0, 1]), weight=ones(2)), r"weight must have shape \(3,\)"),
        (lambda: F.bilinear(zeros(1, 2), zeros(1, 2), zeros(1, 2, 3)), r"\(out, in1, in2\) does not fit"),
        (lambda: F.one_hot(tensor([3]), 3), "classes from 0 to 2"),
        (lambda: F.glu(zeros(3)), "even length"),
        (lambda: F.prelu(zeros(2, 3), zeros(2)), "1 slope or 3"),
        (lambda: F.gelu(zeros(1), "exact"), '"none" or "tanh"'),
        (lambda: F.softshrink(zeros(1), -1.0), "lambd must not be negative"),
        (lambda: F.hardtanh(zeros(1), 1.0, 0.0), "min_val must not be above"),
        (lambda: F.rrelu(zeros(1), 1.0, 0.0), "lower must not be above"),
        (lambda: F.celu(zeros(1), 0.0), "alpha must not be 0"),
        (lambda: F.grid_sample(zeros(1, 1, 2, 2), zeros(2, 1, 1, 2)), "does not fit an input"),
        (lambda: F.affine_grid(zeros(1, 2, 3), [2, 1, 2, 2]), "does not fit images"),
    ],
)
def test_misuse_of_losses_and_functions_is_told(act, message):
    with pytest.raises(ValueError, match=message):
        act()


# -- chance and places


@pytest.mark.parametrize(
    "layer, shape, kept",
    [
        (nn.Dropout1d, (30, 40, 3), (2,)),
        (nn.Dropout2d, (30, 40, 2, 2), (2, 3)),
        (nn.Dropout3d, (40, 30, 1, 2, 2), (2, 3, 4)),
    ],
)
def test_channel_dropout(layer, shape, kept):
    out = layer(0.25)(ones(*shape)).numpy()
    assert (out.max(kept) == out.min(kept)).all() and set(np.unique(out)) == {0, np.float32(4 / 3)}
    assert abs(out.mean() - 1) < 0.06
    x = ones(*shape)
    assert layer(0.5).eval()(x) is x
    assert layer(0.5, inplace=True)(x) is x and not x.numpy().all()


@pytest.mark.parametrize("layer, axes", [(nn.AlphaDropout, ()), (nn.FeatureAlphaDropout, (2,))])
def test_alpha_dropout_keeps_mean_and_variance(layer, axes):
    x = F.selu(randn(200, 100, 5))
    out = layer(0.3)(x).numpy()
    assert abs(out.mean() - x.numpy().mean()) < 0.05 and abs(out.std() - x.numpy().std()) < 0.06
    dropped = np.isclose(out, out.min(), atol=1e-4) if not axes else (out.std(axes) < 1e-6)
    assert abs(dropped.mean() - 0.3) < 0.02


def test_two_dimensional_dropout_of_three_dimensions_warns():
    with pytest.warns(UserWarning, match="dropout1d"):
        F.dropout2d(ones(2, 3, 4))


def test_rrelu_draws_its_slopes():
    out = nn.RReLU(0.1, 0.3)(-ones(1000)).numpy()
    assert out.min() >= -0.3 and out.max() <= -0.1 and abs(out.mean() + 0.2) < 0.02


def test_gumbel_softmax():
    logits = tensor([0.0, 1.0, 2.0]).expand(4000, 3).contiguous().requires_grad_()
    hard = F.gumbel_softmax(logits, hard=True)
    shares = hard.detach().numpy().mean(0)
    np.testing.assert_allclose(shares, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), atol=0.03)
    (hard * tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.numpy().any()
    np.testing.assert_allclose(F.gumbel_softmax(logits, tau=0.5).detach().numpy().sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["celu", "elu", "selu", "leaky_relu", "hardtanh", "silu", "mish", "hardswish", "hardsigmoid", "relu6"]
)
def test_in_place_activations(name):
    function = getattr(F, name)
    x = randn(5, dtype="float64", requires_grad=True)
    expected = function(x)
    y = x * 1
    assert function(y, inplace=True) is y
    np.testing.assert_array_equal(y.detach().numpy(), expected.detach().numpy())
    for one, other in zip(autograd.grad(y.sum(), x), autograd.grad(expected.sum(), x)):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_in_place_with_settings():
    x = tensor([-1.0, 0.5])
    assert F.threshold(x, 0.0, 7.0, inplace=True) is x and x.tolist() == [7, 0.5]
    assert F.rrelu(tensor([-1.0]), 0.5, 0.5, inplace=True).tolist() == [-0.5]
    assert F.threshold_(x, 1.0, 0.0).tolist() == [7, 0]


# -- containers of parameters


def test_parameter_list():
    parameters = nn.ParameterList([ones(2), nn.Parameter(zeros(1))])
    parameters.append(ones(3))
    parameters += [zeros(1)]
    assert len(parameters) == 4 and all(isinstance(p, nn.Parameter) for p in parameters)
    assert list(parameters.state_dict()) == ["0", "1", "2", "3"]
    assert parameters.pop(0).shape == (2,) and len(parameters) == 3 and len(parameters[1:]) == 2
    parameters[-1] = ones(7)
    assert parameters[2].shape == (7,) and len(list(parameters.parameters())) == 3
    assert repr(nn.ParameterList([ones(2, 3)])) == ("ParameterList((0): Parameter containing: [float32 of size 2x3])")
    with pytest.raises(IndexError, match="index 5 is out of range"):
        parameters[5]


def test_parameter_dict():
    parameters = nn.ParameterDict({"a": ones(2)})
    parameters["b"] = nn.Parameter(zeros(1))
    parameters.update({"c": ones(1)})
    assert list(parameters) == list(parameters.keys()) == ["a", "b", "c"] and "b" in parameters
    assert list(parameters.state_dict()) == ["a", "b", "c"] and isinstance(parameters["a"], nn.Parameter)
    assert parameters.pop("a").shape == (2,) and parameters.get("a") is None
    assert parameters.setdefault("b", None) is parameters["b"] and dict(parameters.items()).keys() == {"b", "c"}
    assert parameters.popitem()[0] == "c" and len(parameters.copy()) == 1
    assert list(nn.ParameterDict.fromkeys(["x", "y"], 1.0).values()) == [1.0, 1.0]
    parameters.clear()
    assert not len(parameters)
    with pytest.raises(KeyError, match="has an attribute 'keys' already"):
        parameters["keys"] = ones(1)
    with pytest.raises(TypeError, match="keys of a ParameterDict are strings"):
        parameters[1] = ones(1)


def test_sequential_pops():
    model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert isinstance(model.pop(1), nn.Tanh) and [type(m).__name__ for m in model] == ["ReLU", "Sigmoid"]


# -- what a comparison with PyTorch found


@pytest.mark.parametrize(
    "name", "leaky_relu elu selu celu softplus logsigmoid silu mish hardtanh relu6 hardswish hardsigmoid".split()
)
def test_activations_take_bfloat16(name):
    function = getattr(F, name)
    x = tensor([-2.0, 0.5, 4.0], dtype="bfloat16", requires_grad=True)
    result = function(x)
    assert result.dtype == x.dtype
    expected = function(x.float())
    assert np.allclose(result.float().tolist(), expected.tolist(), rtol=2e-2)
    result.sum().backward()
    assert x.grad.dtype == x.dtype


GROUP_NORM = (
    [3.71875, 5.28125, 2.21875, 7.65625],
    [
        [1.3359375, 1.921875, -1.5859375],
        [-1.7265625, 0.54296875, -0.486328125],
        [-2.265625, 1.2421875, -0.8046875],
        [0.50390625, -0.099609375, 1.453125],
    ],
)


def test_group_norm_has_gradients_in_bfloat16():
    x = tensor([[[0.5, 1, -2], [3, 0.25, 1.5], [2, -1, 0.75], [1.25, -0.5, 4]]], dtype="bfloat16", requires_grad=True)
    weight = tensor([1.0, -2.0, 0.5, 3.0], dtype="bfloat16", requires_grad=True)
    grads = autograd.grad(F.group_norm(x, 2, weight), (weight, x), x.detach())
    for grad, expected in zip(grads, GROUP_NORM):
        assert grad.dtype == x.dtype and np.allclose(grad.float().numpy(), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_normalized_halves_stay_halves_beside_parameters_in_float32(dtype):
    x, four, three = ones(2, 4, 3).to(dtype), ones(4), ones(3)
    assert F.group_norm(x, 2, four, four).dtype == F.instance_norm(x, weight=four).dtype == x.dtype
    assert F.layer_norm(x, (3,), three, three).dtype == F.batch_norm(x, four, four, four).dtype == x.dtype
    assert F.rms_norm(x, (3,), three).dtype == three.dtype


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rms_norm_of_halves_adds_the_epsilon_of_float32(dtype):
    small = tensor([[0.0005, 0.001, -0.002]], dtype=dtype)
    assert np.allclose(F.rms_norm(small, (3,)).float().numpy(), [[0.36572266, 0.7314453, -1.4628906]], rtol=4e-3)


def test_whole_numbers_are_bounded_too():
    assert F.relu6(tensor([-1, 3, 9])).tolist() == [0, 3, 6]


def test_gradients_at_infinity():
    def slope(function, at):
        x = tensor(at, requires_grad=True)
        function(x).backward()
        return x.grad.item()

    inf = float("inf")
    assert F.leaky_relu(tensor(inf), 0.0).item() == inf
    assert slope(F.hardswish, inf) == 1 and slope(F.softplus, inf) == 1 and slope(F.logsigmoid, -inf) == 1
    weight = tensor([0.5], requires_grad=True)
    F.prelu(tensor([inf, -1.0]), weight).sum().backward()
    assert weight.grad.tolist() == [-1]


def test_cosine_similarity_broadcasts_first():
    a, b = tensor([[3.0, 4.0]]), tensor([[2.0]])
    assert F.cosine_similarity(a, b, -1).item() == pytest.approx(7 / 5 / 2**0.5)


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_the_mean_of_no_targets_is_nan_and_its_gradient_0(loss):
    assert np.isnan(loss(zeros(0, 3), zeros(0, dtype="int64")).item())
    scores = zeros(2, 3, requires_grad=True)
    result = loss(scores, tensor([1, 1]), ignore_index=1)
    result.backward()
    assert np.isnan(result.item()) and not scores.grad.any()


def test_label_smoothing_is_between_0_and_1():
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.cross_entropy(zeros(1, 2), tensor([0]), label_smoothing=2.0)


@pytest.mark.parametrize("name", ["softplus", "logsigmoid", "elu", "selu", "celu"])
def test_smooth_activations_in_single_precision(name):
    x = np.concatenate([-np.logspace(-30, 1.9, 400), np.logspace(-30, 1.9, 400), [0.0, -0.5, 0.5]]).astype("f4")
    function = getattr(F, name)
    single, double = function(tensor(x)).numpy(), function(tensor(x.astype("f8"))).numpy()
    np.testing.assert_allclose(single, double, rtol=4e-7, atol=1e-44)


def test_gelu_in_single_precision():
    x = np.append(np.linspace(-12, 12, 4001), [-100.0, 100.0, 0.0]).astype("f4")
    single, double = F.gelu(tensor(x)).numpy(), F.gelu(tensor(x.astype("f8"))).numpy()
    np.testing.assert_allclose(single, double, rtol=2e-7, atol=2e-7)
    assert not single[-3] and single[-2] == 100


@pytest.mark.parametrize("name", ["hardswish", "hardsigmoid"])
def test_bent_activations_pass_no_infinite_gradient_where_they_are_flat(name):
    x = tensor([-4.0, -3.0], requires_grad=True)
    (grad,) = autograd.grad(getattr(F, name)(x), x, tensor([np.inf, -np.inf]))
    assert grad.tolist() == [0, 0]


@pytest.mark.parametrize("threshold", [-1000, -math.inf])
def test_softplus_is_its_input_above_a_very_low_threshold(threshold):
    x = tg.tensor([-200.0, 0.0, 3.0], requires_grad=True)
    result = F.softplus(x, threshold=threshold)
    result.sum().backward()
    assert result.tolist() == x.tolist() and x.grad.tolist() == [1, 1, 1]


def test_softplus_with_a_beta_does_not_overflow():
    x = tg.tensor([1e38, 3e38])
    assert F.softplus(x, beta=10).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("difference", "beta", "dtype"),
    [(3.0, 1e-40, tg.float32), (1e30, 1e30, tg.float32), (-1000.0, 900.0, tg.float16), (-0.25, 0.5, tg.float64)],
)
def test_smooth_l1_loss_does_not_overflow_in_between(difference, beta, dtype):
    x = tg.tensor([difference], dtype=dtype, requires_grad=True)
    loss = F.smooth_l1_loss(x, tg.zeros(1, dtype=dtype), beta=beta)
    loss.backward()
    away = abs(difference)
    expected = away - beta / 2 if away >= beta else away * away / beta / 2
    assert loss.item() == pytest.approx(expected, rel=1e-3)
    assert x.grad.item() == pytest.approx(math.copysign(min(away / beta, 1), difference), rel=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(8, 160), (2, 4, 160), (160, 8), (65, 160)])
def test_linear_of_few_rows_is_in_order_and_right(shape, dtype):
    random = np.random.default_rng(0)
    x, weight, bias = (random.normal(size=size).astype(dtype) for size in [shape, (130, 160), (130,)])
    x = x.T if shape[-1] == 8 else x  # rows that are not in order
    tensors = [tg.from_numpy(each).requires_grad_() for each in (x, weight, bias)]
    result = F.linear(*tensors)
    result.sum().backward()
    assert result.is_contiguous()
    np.testing.assert_allclose(result.detach().numpy(), x @ weight.T + bias, atol=1e-3 if dtype == "float32" else 1e-10)
    np.testing.assert_allclose(tensors[0].grad.numpy(), np.broadcast_to(weight.sum(0), x.shape), atol=1e-3)
