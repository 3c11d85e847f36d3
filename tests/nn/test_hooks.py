"""Hooks of modules: when they are called, with what, what they may replace, and that they go again."""

import copy
import pickle

import numpy as np
import pytest
from telegrad import nn
from telegrad.core import autograd, no_grad, ones, randn, tensor, zeros


class Twice(nn.Module):
    def forward(self, x, scale=2.0):
        return x * scale


def test_forward_hooks_see_and_replace():
    module, seen = Twice(), []
    module.register_forward_pre_hook(lambda m, args: seen.append(("pre", m is module, len(args))))
    module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    handle = module.register_forward_hook(lambda m, args, result: seen.append(("post", args[0].item(), result.item())))
    replacing = module.register_forward_hook(lambda m, args, result: -result)
    assert module(tensor(1.0)).item() == -4
    assert seen == [("pre", True, 1), ("post", 2.0, 4.0)]
    handle.remove()
    replacing.remove()
    assert module(tensor(1.0)).item() == 4 and len(seen) == 3
    with module.register_forward_hook(lambda *_: zeros(1)):
        assert module(tensor(1.0)).item() == 0
    assert module(tensor(1.0)).item() == 4


def test_forward_hooks_with_kwargs():
    module = Twice()
    module.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": 10.0}), with_kwargs=True)
    seen = []
    module.register_forward_hook(lambda m, args, kwargs, result: seen.append(kwargs), with_kwargs=True)
    assert module(tensor(1.0), scale=3.0).item() == 10 and seen == [{"scale": 10.0}]
    module.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(TypeError, match=r"must return None or a tuple \(args, kwargs\)"):
        module(tensor(1.0))


def test_order_of_hooks():
    module, order = nn.Identity(), []
    for number in range(2):
        module.register_forward_hook(lambda *_, number=number: order.append(number))
    module.register_forward_hook(lambda *_: order.append("first"), prepend=True)
    everywhere = nn.register_module_forward_hook(lambda m, args, result: order.append("all"))
    before = nn.register_module_forward_pre_hook(lambda m, args: order.append("before"))
    module(zeros(1))
    everywhere.remove()
    before.remove()
    assert order == ["before", "all", "first", 0, 1]
    module(zeros(1))
    assert len(order) == 8


def test_hooks_that_are_always_called():
    module, seen = nn.Linear(2, 2), []
    module.register_forward_hook(lambda m, args, result: seen.append(result), always_call=True)
    module.register_forward_hook(lambda m, args, result: seen.append("not"))
    with pytest.raises(ValueError):
        module(zeros(1, 3))
    assert seen == [None]


def test_full_backward_hooks():
    module = nn.Linear(2, 3)
    seen = {}

    def hook(m, grad_input, grad_output):
        seen.update(input=grad_input, output=grad_output, same=m is module)

    module.register_full_backward_hook(hook)
    x = randn(4, 2, requires_grad=True)
    module(x).backward(ones(4, 3))
    assert seen["same"] and seen["output"][0].tolist() == np.ones((4, 3)).tolist()
    np.testing.assert_allclose(seen["input"][0].numpy(), x.grad.numpy())
    np.testing.assert_allclose(module.weight.grad.numpy(), np.tile(x.detach().numpy().sum(0), (3, 1)), rtol=1e-6)


def test_backward_hooks_replace():
    module = Twice()
    module.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 10,))
    module.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] + grad_output[0],))
    x = tensor(3.0, requires_grad=True)
    module(x).backward()
    assert x.grad.item() == 10 * 2 + 10
    module.register_full_backward_hook(lambda m, grad_input, grad_output: (None, None))
    with pytest.raises(ValueError, match="as many gradients as grad_input has, 1, not 2"):
        module(x).backward()


def test_backward_hooks_where_no_input_needs_a_gradient():
    module, seen = nn.Linear(2, 1), []
    module.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, len(grad_output))))
    module(ones(3, 2)).sum().backward()
    assert seen == [((None,), 1)] and module.weight.grad is not None
    with no_grad():
        module(ones(3, 2))
    assert len(seen) == 1


def test_backward_hooks_of_several_inputs_and_outputs():
    class Swap(nn.Module):
        def forward(self, a, b, c):
            return b * 2, a * 3

    module, seen = Swap(), []
    module.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
    a, b = tensor(1.0, requires_grad=True), tensor(1.0)
    first, second = module(a, b, "text")
    assert not first.requires_grad
    second.backward()
    ((grad_input, grad_output),) = seen
    assert [g if g is None else g.item() for g in grad_input] == [3.0, None, None]
    assert [g if g is None else g.item() for g in grad_output] == [None, 1.0]


def test_backward_hooks_in_recorded_passes():
    module = Twice()
    module.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 5,))
    x = tensor(3.0, requires_grad=True)
    (grad,) = autograd.grad(module(x) * x, x, create_graph=True)
    assert grad.item() == 3 * 2 * 5 + 6
    (second,) = autograd.grad(grad, x)
    assert second.item() == 2 * 5 + 2 * 5  # the second pass goes through the hook too


def test_global_backward_hooks():
    seen = []
    handles = [
        nn.register_module_full_backward_hook(lambda m, *_: seen.append(type(m).__name__)),
        nn.register_module_full_backward_pre_hook(lambda m, *_: seen.append("before")),
    ]
    nn.Sequential(nn.Linear(1, 1), nn.Tanh())(ones(1, 1, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    assert seen == ["before", "before", "Tanh", "before", "Linear", "Sequential"]


def double_result(module, args, result):
    return result * 2


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies_keep_hooks_of_their_own(duplicate):
    module = Twice()
    handle = module.register_forward_hook(double_result)
    other = duplicate(module)
    handle.remove()
    assert module(tensor(1.0)).item() == 2 and other(tensor(1.0)).item() == 4


# -- state dicts


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.weight = nn.Parameter(zeros(1))

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_extra_state():
    net = nn.Sequential(Counting())
    net[0].count = 3
    state = net.state_dict()
    assert state["0._extra_state"] == {"count": 3}
    other = nn.Sequential(Counting())
    other.load_state_dict(state)
    assert other[0].count == 3
    del state["0._extra_state"]
    with pytest.raises(nn.StateDictError, match=r"missing keys: '0\._extra_state'"):
        other.load_state_dict(state)
    with pytest.raises(NotImplementedError, match="Linear has no extra state"):
        nn.Linear(1, 1).set_extra_state(None)


def test_state_dict_hooks():
    net, order = nn.Sequential(nn.Linear(1, 1)), []
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep_vars: order.append((prefix, keep_vars)))
    net[0].register_state_dict_post_hook(lambda m, state, prefix, metadata: state.pop(prefix + "bias"))
    assert list(net.state_dict()) == ["0.weight"] and order == [("0.", False)]


def test_load_state_dict_hooks():
    net = nn.Sequential(nn.Linear(1, 1))

    def renamed(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "weight"] = state.pop(prefix + "kernel")

    net[0].register_load_state_dict_pre_hook(renamed)
    seen = []
    net.register_load_state_dict_post_hook(lambda m, keys: seen.append(list(keys.missing_keys)))
    given = {"0.kernel": ones(1, 1), "0.bias": ones(1)}
    net.load_state_dict(given)
    assert net[0].weight.item() == 1 and seen == [[]] and list(given) == ["0.kernel", "0.bias"]
    net[0].register_load_state_dict_pre_hook(lambda *args: args[-1].append("not this one"))
    with pytest.raises(nn.StateDictError, match="not this one"):
        net.load_state_dict(given)


def test_members_by_path():
    net = nn.Sequential(nn.BatchNorm1d(2))
    assert net.get_parameter("0.weight") is net[0].weight
    assert net.get_buffer("0.running_mean") is net[0].running_mean
    net.set_submodule("0", nn.Tanh())
    assert isinstance(net[0], nn.Tanh)
    for act, message in [
        (lambda: net.get_parameter("0.weight"), "Tanh has no parameter 'weight'"),
        (lambda: net.get_buffer("1.x"), "Sequential has no module '1'"),
        (lambda: net.set_submodule("0.x", nn.Tanh(), strict=True), "Tanh has no module 'x'"),
    ]:
        with pytest.raises(AttributeError, match=message):
            act()


def test_conversion_by_type():
    assert nn.Linear(1, 1).type("float64").weight.dtype == np.float64
