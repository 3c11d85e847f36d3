"""State dicts: what they hold, loading them, and what is said when they do not fit."""

import numpy as np
import pytest
from telegrad import nn
from telegrad.base.errors import AutogradError, TelegradError
from telegrad.core import autograd, randn, tensor, zeros


def model():
    made = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 1)))
    made.register_buffer("count", tensor(0))
    return made


def test_it_holds_detached_tensors_over_the_same_memory():
    net = model()
    state = net.state_dict()
    assert list(state) == ["count", "0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert not any(value.requires_grad for value in state.values())
    assert np.shares_memory(state["0.weight"].numpy(), net[0].weight.detach().numpy())
    assert net.state_dict(keep_vars=True)["0.weight"] is net[0].weight
    destination = {"other": zeros(1)}
    assert list(net[0].state_dict(destination=destination, prefix="at.")) == ["other", "at.weight", "at.bias"]


def test_loading_copies():
    one, two = model().double(), model()
    one.count.fill_(7)
    weight = two[0].weight
    result = two.load_state_dict(one.state_dict())
    assert result == ([], []) and repr(result) == "<All keys matched successfully>"
    assert two[0].weight is weight and weight.dtype == np.float32 and two.count.item() == 7
    np.testing.assert_allclose(weight.detach().numpy(), one[0].weight.detach().numpy(), rtol=1e-6)
    assert not np.shares_memory(weight.detach().numpy(), one[0].weight.detach().numpy())


def test_loading_takes_arrays():
    net = nn.Linear(1, 1)
    net.load_state_dict({"weight": np.array([[3.0]]), "bias": np.array([4.0])})
    assert net.weight.item() == 3 and net.bias.item() == 4


def test_assign_takes_the_memory():
    net, state = nn.Linear(1, 1), {"weight": zeros(1, 1, dtype="float64"), "bias": zeros(1)}
    net.load_state_dict(state, assign=True)
    state["weight"].fill_(5)
    assert net.weight.item() == 5 and net.weight.dtype == np.float64 and isinstance(net.weight, nn.Parameter)


def test_all_that_does_not_fit_is_listed_and_nothing_is_loaded():
    net = model()
    before = net[0].bias.detach().numpy().copy()
    state = {"0.weight": zeros(3, 2), "0.bias": zeros(2), "extra": zeros(1), "1.0.bias": "text"}
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    assert isinstance(caught.value, nn.StateDictError) and isinstance(caught.value, TelegradError)
    assert str(caught.value) == (
        "the state dict does not fit Sequential:\n"
        "  missing keys: 'count', '1.0.weight'\n"
        "  unexpected keys: 'extra'\n"
        "  '0.weight' has shape (2, 3) in the module and (3, 2) in the state dict\n"
        "  '1.0.bias' must be a tensor, and the state dict has str"
    )
    np.testing.assert_array_equal(net[0].bias.detach().numpy(), before)


def test_not_strict_passes_over_keys_but_not_shapes():
    net = nn.Linear(2, 1)
    result = net.load_state_dict({"bias": zeros(1), "other": zeros(1)}, strict=False)
    assert result.missing_keys == ["weight"] and result.unexpected_keys == ["other"]
    assert repr(result) == "IncompatibleKeys(missing_keys=['weight'], unexpected_keys=['other'])"
    with pytest.raises(nn.StateDictError, match=r"'bias' has shape \(1,\) in the module and \(2,\)"):
        net.load_state_dict({"bias": zeros(2)}, strict=False)
    with pytest.raises(TypeError, match=r"takes a mapping .*not list"):
        net.load_state_dict([1])


def test_loading_is_a_change_in_place():
    net, x = nn.Linear(2, 1), randn(1, 2, requires_grad=True)
    loss = net(x).sum()
    net.load_state_dict(nn.Linear(2, 1).state_dict())
    with pytest.raises(AutogradError, match="modified"):
        autograd.grad(loss, x)
