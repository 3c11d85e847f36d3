"""nn.Module: registration, enumeration, modes, conversion, copies."""

import copy
import pickle

import numpy as np
import pytest
from telegrad import nn
from telegrad.base.errors import AutogradError
from telegrad.core import Tensor, no_grad, randn, tensor, zeros


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.out = nn.Linear(4, 2, bias=False)
        self.scale = nn.Parameter(tensor(2.0))
        self.register_buffer("seen", zeros(2))
        self.register_buffer("cache", zeros(1), persistent=False)

    def forward(self, x):
        return self.out(self.inner(x)) * self.scale


NAMES = ["scale", "inner.0.weight", "inner.0.bias", "out.weight"]


def names(pairs):
    return [name for name, _ in pairs]


def test_assigning_registers():
    net = Net()
    assert names(net.named_parameters()) == NAMES
    assert len(list(net.parameters())) == 4 and all(isinstance(p, nn.Parameter) for p in net.parameters())
    assert names(net.named_buffers()) == ["seen", "cache"]
    assert names(net.named_modules()) == ["", "inner", "inner.0", "inner.1", "out"]
    assert names(net.named_children()) == ["inner", "out"]
    assert names(net.named_parameters(prefix="net", recurse=False)) == ["net.scale"]
    assert net.get_submodule("inner.0") is net.inner[0] and net.get_submodule("") is net
    assert {"inner", "scale", "seen", "training"} <= set(dir(net))


def test_a_call_runs_forward():
    net, x = Net(), randn(5, 3)
    expected = np.maximum(x.numpy() @ net.inner[0].weight.detach().numpy().T + net.inner[0].bias.detach().numpy(), 0)
    np.testing.assert_allclose(
        net(x).detach().numpy(), expected @ net.out.weight.detach().numpy().T * 2, rtol=1e-5, atol=1e-6
    )
    with pytest.raises(NotImplementedError, match=r"Module must define forward\(\)"):
        nn.Module()(x)


def test_attributes_change_their_kind():
    net = Net()
    net.seen = tensor([1.0, 2.0])  # stays a buffer
    assert names(net.named_buffers())[0] == "seen"
    net.scale = None  # stays a parameter's place
    assert "scale" not in names(net.named_parameters()) and net.scale is None
    net.out = nn.Identity()
    assert names(net.named_children()) == ["inner", "out"]
    net.out = nn.Parameter(zeros(1))
    assert "out" in names(net.named_parameters()) and names(net.named_children()) == ["inner"]
    net.plain = zeros(1)  # neither
    assert "plain" not in net.state_dict()
    del net.out
    with pytest.raises(AttributeError, match="Net has no attribute 'out'"):
        _ = net.out


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda net: setattr(net, "scale", zeros(1)), TypeError, "'scale' is registered as an nn.Parameter"),
        (lambda net: setattr(net, "out", 3), TypeError, "'out' is registered as an nn.Module"),
        (lambda net: setattr(net, "seen", 3), TypeError, "'seen' is registered as a tensor"),
        (lambda net: net.register_parameter("p", zeros(1)), TypeError, "must be an nn.Parameter, not Tensor"),
        (lambda net: net.register_parameter("a.b", None), KeyError, "without dots"),
        (lambda net: net.register_buffer("", None), KeyError, "not empty"),
        (lambda net: net.register_buffer("forward", None), KeyError, "has an attribute 'forward' already"),
        (lambda net: net.register_module("x", 3), TypeError, "must be an nn.Module, not int"),
        (lambda net: net.train("yes"), TypeError, r"train\(\) takes a bool"),
        (lambda net: net.get_submodule("inner.7"), AttributeError, "Sequential has no module '7'"),
        (lambda net: net.to(np.int64), TypeError, "floating-point or complex numbers, not int64"),
        (lambda net: net.to("cuda"), ValueError, "cpu"),
        (lambda net: nn.Parameter(tensor([1, 2])), AutogradError, "only floating-point tensors"),
    ],
)
def test_misuse_is_told(act, error, message):
    with pytest.raises(error, match=message):
        act(Net())


def test_super_init_comes_first():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\) before .*'layer'"):
        Early()


def test_shared_parameters_count_once():
    net = Net()
    net.again = net.inner[0]
    net.tied = net.inner[0].weight
    assert names(net.named_parameters()) == ["scale", "tied", *NAMES[2:3], "out.weight"]
    assert len(names(net.named_parameters(remove_duplicate=False))) == 7
    assert {"again.weight", "tied", "inner.0.weight"} <= net.state_dict().keys()


def test_modes_and_apply():
    net = Net()
    assert net.eval() is net and not any(module.training for module in net.modules())
    assert net.train() is net and all(module.training for module in net.modules())
    order = []
    net.apply(lambda module: order.append(type(module).__name__))
    assert order == ["Linear", "ReLU", "Sequential", "Linear", "Net"]
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_zero_grad():
    net = Net()
    net(randn(5, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(np.all(parameter.grad.numpy() == 0) for parameter in net.parameters())
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_conversion_keeps_the_tensors():
    net = Net()
    net.register_buffer("count", tensor(3))
    net(randn(5, 3)).sum().backward()
    before = list(net.parameters())
    assert net.double() is net
    assert all(a is b for a, b in zip(before, net.parameters()))
    assert {p.dtype.name for p in net.parameters()} == {p.grad.dtype.name for p in net.parameters()} == {"float64"}
    assert net.seen.dtype == np.float64 and net.count.dtype == np.int64
    assert next(net.to("cpu").float().to(zeros(1, dtype="float16")).parameters()).dtype == np.float16


def test_a_conversion_to_the_same_type_is_none():
    layer, x = nn.Linear(2, 2), randn(1, 2, requires_grad=True)
    loss = layer(x).sum()
    layer.float()
    with no_grad():
        layer.weight.add_(1)
    with pytest.raises(AutogradError, match="modified"):
        loss.backward()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies(duplicate):
    net = Net()
    net.tied = net.out.weight
    other = duplicate(net)
    assert names(other.named_parameters()) == names(net.named_parameters())
    assert all(isinstance(parameter, nn.Parameter) and parameter.requires_grad for parameter in other.parameters())
    assert other.tied is other.out.weight and other.tied is not net.tied
    x = randn(2, 3)
    np.testing.assert_array_equal(other(x).detach().numpy(), net(x).detach().numpy())


def test_repr():
    assert repr(Net()) == (
        "Net(\n  (inner): Sequential(\n    (0): Linear(in_features=3, out_features=4, bias=True)\n    (1): ReLU()\n  )\n"
        "  (out): Linear(in_features=4, out_features=2, bias=False)\n)"
    )
    assert repr(nn.Embedding(5, 2, padding_idx=1)) == "Embedding(5, 2, padding_idx=1)"
    assert repr(nn.LayerNorm(4)) == "LayerNorm((4,), eps=1e-05, elementwise_affine=True)"


def test_a_parameter_is_a_leaf_over_its_data():
    data = zeros(2)
    parameter = nn.Parameter(data)
    assert parameter.is_leaf and parameter.requires_grad and not data.requires_grad
    data.add_(1)
    assert parameter.detach().tolist() == [1, 1] and parameter._version == data._version
    assert type(parameter + 1) is Tensor
    assert nn.Parameter().shape == (0,)


def test_a_received_tensor_becomes_a_parameter():
    tensor_ = Tensor(np.ones(3), True)
    parameter = tensor_.as_subclass(nn.Parameter)
    assert type(parameter) is nn.Parameter and parameter.requires_grad and parameter.is_leaf
    assert np.shares_memory(parameter.detach().numpy(), tensor_.detach().numpy())


# -- containers


def test_sequential():
    first, second, third = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    model = nn.Sequential(first, second, third)
    assert len(model) == 3 and model[-1] is third and list(model) == [first, second, third]
    assert list(model[:2]) == [first, second] and list(model[1:].state_dict()) == ["2.weight", "2.bias"]
    named = nn.Sequential({"one": first, "two": third})
    assert named.one is first and list(named[1:].state_dict()) == ["two.weight", "two.bias"]
    model[1] = nn.Tanh()
    model.append(nn.Sigmoid()).insert(0, nn.Identity())
    assert [type(m).__name__ for m in model] == ["Identity", "Linear", "Tanh", "Linear", "Sigmoid"]
    del model[0]
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with pytest.raises(IndexError, match=r"index 9 .*Sequential.*4"):
        model[9]


def test_module_list():
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))
    layers += [nn.ReLU()]
    layers.extend([nn.Tanh()])
    assert len(layers) == 4 and len(layers[1:]) == 3 and len(layers + layers) == 8
    assert names(layers.named_parameters()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_module_dict():
    modules = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    modules["c"] = nn.Tanh()
    assert list(modules) == list(modules.keys()) == ["a", "b", "c"] and "b" in modules and len(modules) == 3
    assert type(modules.pop("c")) is nn.Tanh and "c" not in modules
    assert names(modules.named_parameters()) == ["a.weight", "a.bias"]
    assert [name for name, _ in modules.items()] == ["a", "b"] and len(list(modules.values())) == 2
    modules.clear()
    assert not len(modules)


def test_a_buffer_registers_itself():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = nn.Buffer(zeros(2))
            self.scratch = nn.Buffer(zeros(1), persistent=False)

    module = Counter()
    assert [name for name, _ in module.named_buffers()] == ["count", "scratch"] and not list(module.parameters())
    assert list(module.state_dict()) == ["count"]
    module.count = zeros(2) + 1
    assert module.count.tolist() == [1, 1] and list(module.state_dict()) == ["count"]
    again = copy.deepcopy(Counter())
    assert list(again.state_dict()) == ["count"] and again.scratch.persistent is False
    assert not pickle.loads(pickle.dumps(again.scratch)).persistent
