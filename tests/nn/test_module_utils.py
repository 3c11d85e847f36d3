"""nn.utils: pruning, fusion and orthogonal weights, beside PyTorch's numbers; modules without values; averages."""

import pickle

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import assert_close, numbers, recorded
from telegrad import nn
from telegrad.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval, parametrizations, prune

GOLDEN = recorded("module_utils")


def fill(module):
    """Return a module with the recorder's numbers, in float64, for evaluation."""
    module.double()
    for seed, tensor in enumerate([*module.parameters(), *module.buffers()]):
        if tensor.is_floating_point():
            tensor.data = numbers(seed, *tensor.shape)
    if hasattr(module, "running_var"):
        module.running_var.abs_().add_(0.5)
    return module.eval()


@pytest.mark.parametrize("case", GOLDEN["prunings"], ids=lambda case: "-".join(name for name, _ in case["steps"]))
def test_masks_are_those_of_pytorch(case):
    layer = fill(nn.Linear(3, 4))
    for name, arguments in case["steps"]:
        assert getattr(prune, name)(layer, "weight", *arguments) is layer
    assert_close(layer.weight_mask, case["mask"])
    assert_close(layer.weight, case["weight"])


def test_several_parameters_are_pruned_together():
    layers = [fill(nn.Linear(3, 4)), fill(nn.Linear(4, 2))]
    prune.l1_unstructured(layers[0], "weight", 2)
    prune.global_unstructured([(layer, "weight") for layer in layers], prune.L1Unstructured, amount=0.4)
    for layer, mask in zip(layers, GOLDEN["global"]):
        assert_close(layer.weight_mask, mask)


def test_a_pruned_parameter_is_learned_through_its_mask_and_can_be_made_plain():
    layer = fill(nn.Linear(3, 4))
    former = layer.weight
    prune.l1_unstructured(layer, "weight", 5)
    assert layer.weight_orig is former and set(layer.state_dict()) == {"bias", "weight_orig", "weight_mask"}
    layer(tg.ones(2, 3, dtype=tg.float64)).sum().backward()
    assert_close(layer.weight_orig.grad, (2 * layer.weight_mask).numpy())
    copied = pickle.loads(pickle.dumps(layer))
    assert prune.is_pruned(nn.Sequential(copied)) and copied.weight_mask.sum().item() == 7
    pruned = layer.weight.detach().numpy().copy()
    assert prune.remove(layer, "weight") is layer and layer.weight is former
    assert_close(layer.weight, pruned)
    assert not prune.is_pruned(layer) and set(layer.state_dict()) == {"bias", "weight"}


@pytest.mark.parametrize("steps", [1, 2])
def test_random_pruning_leaves_as_many_as_it_says(steps):
    layer = nn.Linear(8, 10)
    for _ in range(steps):
        prune.random_unstructured(layer, "weight", 0.5)
    assert layer.weight_mask.sum().item() == 80 / 2**steps
    layer = nn.Linear(8, 10)
    for _ in range(steps):
        prune.random_structured(layer, "weight", 2, dim=0)
    assert layer.weight_mask.sum(1).tolist().count(0) == 2 * steps
    assert layer.weight_mask.sum().item() == 8 * (10 - 2 * steps)


def test_importance_may_be_given():
    layer = fill(nn.Linear(2, 2))
    scores = tg.tensor([[1.0, 4.0], [3.0, 2.0]])
    prune.l1_unstructured(layer, "weight", 2, importance_scores=scores)
    assert layer.weight_mask.tolist() == [[0, 1], [1, 0]]
    mask = prune.RandomUnstructured(1).prune(tg.ones(3))
    assert sorted(mask.tolist()) == [0, 1, 1]


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda layer: prune.l1_unstructured(layer, "weight", 1.5), ValueError, "amount must be"),
        (lambda layer: prune.l1_unstructured(layer, "weight", -1), ValueError, "amount must be"),
        (lambda layer: prune.l1_unstructured(layer, "weight", "half"), TypeError, "amount must be a number"),
        (lambda layer: prune.l1_unstructured(layer, "weight", 100), ValueError, "only 12 to prune"),
        (lambda layer: prune.ln_structured(layer, "bias", 1, 2, 0), ValueError, "two dimensions"),
        (lambda layer: prune.ln_structured(layer, "weight", 1, 2, 2), IndexError, "dim is 2"),
        (lambda layer: prune.remove(layer, "weight"), ValueError, "'weight' of Linear is not pruned"),
        (
            lambda layer: prune.l1_unstructured(layer, "weight", 1, importance_scores=tg.ones(2)),
            ValueError,
            "importance_scores must have",
        ),
        (
            lambda layer: prune.global_unstructured([(layer, "weight")], prune.LnStructured, amount=1),
            TypeError,
            "only unstructured",
        ),
    ],
)
def test_misuse_of_pruning_is_told(act, error, message):
    layer = nn.Linear(3, 4)
    with pytest.raises(error, match=message):
        act(layer)
    assert set(layer.state_dict()) == {"weight", "bias"} and not prune.is_pruned(layer)


@pytest.mark.parametrize(
    ("name", "make", "norm", "options"),
    [
        ("conv", lambda: nn.Conv2d(2, 4, 3), lambda: nn.BatchNorm2d(4), {}),
        ("turned", lambda: nn.ConvTranspose2d(2, 4, 3, bias=False), lambda: nn.BatchNorm2d(4), {"transpose": True}),
    ],
)
def test_a_fused_convolution_does_what_both_do(name, make, norm, options):
    conv, bn = fill(make()), fill(norm())
    fused = fuse_conv_bn_eval(conv, bn, **options)
    assert_close(fused.weight, GOLDEN["fusion"][name][0])
    assert_close(fused.bias, GOLDEN["fusion"][name][1])
    image = numbers(3, 1, 2, 5, 5)
    assert_close(fused(image), bn(conv(image)).detach().numpy())
    assert isinstance(fused.weight, nn.Parameter) and fused is not conv


def test_a_fused_linear_layer_does_what_both_do():
    linear, bn = fill(nn.Linear(3, 4)), fill(nn.BatchNorm1d(4))
    fused = fuse_linear_bn_eval(linear, bn)
    assert_close(fused.weight, GOLDEN["fusion"]["linear"][0])
    assert_close(fused(numbers(3, 5, 3)), bn(linear(numbers(3, 5, 3))).detach().numpy())
    with pytest.raises(ValueError, match="eval"):
        fuse_linear_bn_eval(linear.train(), bn)
    with pytest.raises(ValueError, match="bn has 3 features"):
        fuse_linear_bn_eval(linear.eval(), fill(nn.BatchNorm1d(3)))
    with pytest.raises(ValueError, match="no running statistics"):
        fuse_linear_bn_eval(linear, nn.BatchNorm1d(4, track_running_stats=False).eval())


@pytest.mark.parametrize("case", GOLDEN["orthogonal"], ids=lambda case: f"{case['map']}-{case['shape']}")
def test_orthogonal_maps_are_those_of_pytorch(case):
    rows, columns = case["shape"]
    layer = fill(nn.Linear(columns, rows, bias=False))
    assert parametrizations.orthogonal(layer, orthogonal_map=case["map"], use_trivialization=False) is layer
    weight = layer.weight
    assert_close(weight, case["weight"])
    (weight * numbers(5, rows, columns)).sum().backward()
    assert_close(layer.parametrizations.weight.original.grad, case["gradient"], 1e-11)


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5)])
def test_orthogonal_weights_can_be_set_and_stay_orthogonal(kind, shape):
    layer = nn.Linear(shape[1], shape[0], bias=False).double()
    parametrizations.orthogonal(layer, orthogonal_map=kind)
    target = np.linalg.qr(numbers(1, 5, 5).numpy())[0][: shape[0], : shape[1]]
    target = np.linalg.qr(target if shape[0] >= shape[1] else target.T)[0]
    target = target if shape[0] >= shape[1] else target.T
    layer.weight = tg.tensor(np.ascontiguousarray(target))
    assert_close(layer.weight, target)
    optimizer = tg.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (layer.weight * numbers(5, *shape)).sum().backward()
        optimizer.step()
    weight = layer.weight.detach().numpy()
    short = weight.T @ weight if shape[0] >= shape[1] else weight @ weight.T
    np.testing.assert_allclose(short, np.eye(min(shape)), atol=1e-12)
    assert not np.allclose(weight, target)


def test_misuse_of_orthogonal_is_told():
    with pytest.raises(ValueError, match="two dimensions"):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="must be one of"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="polar")
    layer = parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="cayley", use_trivialization=False)
    with pytest.raises(NotImplementedError, match="use_trivialization=True"):
        layer.weight = tg.eye(2)


def test_to_empty_keeps_shapes_and_dtypes():
    model = nn.Sequential(nn.Linear(2, 3).double(), nn.BatchNorm1d(3))
    before = {name: (tensor.shape, tensor.dtype) for name, tensor in model.state_dict().items()}
    first = model[0].weight
    assert model.to_empty(device="cpu") is model and model[0].weight is first
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in model.state_dict().items()} == before
    with pytest.raises(ValueError, match="all tensors are on the cpu"):
        model.to_empty(device="cuda")


@pytest.mark.parametrize(
    "make",
    [
        lambda new: new(nn.Linear, 3, 2),
        lambda new: new(nn.Conv2d, 2, 3, 3),
        lambda new: new(nn.Embedding, 4, 2, padding_idx=1),
        lambda new: new(nn.LSTM, 3, 2, num_layers=2),
        lambda new: new(nn.MultiheadAttention, 4, 2),
        lambda new: new(nn.LayerNorm, 3, dtype=tg.float64),
        lambda new: new(nn.TransformerEncoderLayer, 4, 2, 8),
    ],
)
def test_skip_init_makes_the_same_parameters_unfilled(make):
    tg.manual_seed(0)
    filled = make(lambda kind, *args, **kwargs: kind(*args, **kwargs))
    tg.manual_seed(0)
    before = tg.get_rng_state().tolist()
    skipped = make(nn.utils.skip_init)
    assert tg.get_rng_state().tolist() == before
    assert [(k, v.shape, v.dtype) for k, v in skipped.state_dict().items()] == [
        (k, v.shape, v.dtype) for k, v in filled.state_dict().items()
    ]
    skipped.load_state_dict(filled.state_dict())
    assert all((a == b).all() for a, b in zip(skipped.parameters(), filled.parameters()))
    assert tg.zeros(2).uniform_(1, 2).min() >= 1  # fills work again


def test_skip_init_leaves_out_every_way_to_fill():
    class Filled(nn.Module):
        def __init__(self, device=None):
            super().__init__()
            self.weight = nn.Parameter(tg.full((2, 2), 7.0, device=device))
            for fill in (nn.init.uniform_, nn.init.trunc_normal_, nn.init.orthogonal_, nn.init.zeros_, nn.init.eye_):
                fill(self.weight)

    assert nn.utils.skip_init(Filled).weight.tolist() == [[7, 7], [7, 7]]


def test_skip_init_takes_classes_of_modules_with_a_device():
    class Plain(nn.Module):
        pass

    with pytest.raises(RuntimeError, match="must take a parameter device"):
        nn.utils.skip_init(Plain)
    with pytest.raises(RuntimeError, match="takes a class of modules"):
        nn.utils.skip_init(nn.Linear(1, 1))
