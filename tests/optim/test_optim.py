"""Optimizers: groups, state, stepping in place. Their arithmetic is in tests/optim/test_optim_golden.py."""

import copy
import pickle
import weakref

import numpy as np
import pytest
from helpers.steps import step_with
from telegrad import nn, optim
from telegrad.base.errors import AutogradError
from telegrad.core import autograd, from_numpy, no_grad, ones, tensor, zeros
from telegrad.optim import lr_scheduler

EVERY = [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad]


def parameter(*values, dtype="float64"):
    return tensor(np.array(values, dtype), requires_grad=True)


def test_parameters_without_gradient_stay():
    used, unused = parameter(1.0), parameter(1.0)
    optimizer = optim.Adam([used, unused])
    (used * 2).sum().backward()
    optimizer.step()
    assert used.item() != 1 and unused.item() == 1 and unused not in optimizer.state
    used.grad = None
    optimizer.step()
    assert unused.item() == 1


def test_a_step_returns_what_the_closure_returned():
    weight = parameter(3.0)
    optimizer = optim.SGD([weight], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    with no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 9 and np.isclose(weight.item(), 2.4)
    assert optimizer.step() is None


@pytest.mark.parametrize("kind", EVERY)
def test_a_backward_under_way_notices_a_step(kind):
    weight, x = parameter(2.0), parameter(5.0)
    optimizer = kind([weight], lr=0.5)
    before = weight.detach().numpy()
    loss = (weight * x).sum()
    step_with(optimizer, {weight: np.ones(1)})
    assert weight.item() != 2
    assert np.shares_memory(before, weight.detach().numpy())
    with pytest.raises(AutogradError, match="modified"):
        autograd.grad(loss, x)


def test_a_local_step_is_in_place():
    weight, x = parameter(2.0), parameter(5.0)
    loss = (weight * x).sum()
    loss.backward(retain_graph=True)
    version = weight._version
    optim.SGD([weight]).step()
    assert weight._version > version
    with pytest.raises(AutogradError, match="modified"):
        loss.backward()


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "maximize": True}])
def test_gradients_stay_as_they_are(kind, options):
    weight = parameter(2.0, 3.0)
    grad = np.array([1.0, -1.0])
    optimizer = kind([weight], **options)
    if kind is optim.SGD:
        optimizer.param_groups[0]["momentum"] = 0.9
    for _ in range(3):
        weight.grad = from_numpy(grad)
        optimizer.step()
        assert grad.tolist() == weight.grad.tolist() == [1, -1]


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (200_000,), (300, 400)])
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"maximize": True}])
def test_a_gradient_that_is_one_number_in_memory(shape, options):
    one, many = (from_numpy(np.linspace(1, 2, int(np.prod(shape))).reshape(shape)).requires_grad_() for _ in range(2))
    one.grad, many.grad = from_numpy(np.broadcast_to(np.float64(3.0), shape)), zeros(shape, dtype=one.dtype) + 3.0
    optim.SGD([one], lr=0.5, **options).step()
    optim.SGD([many], lr=0.5, **options).step()
    np.testing.assert_array_equal(one.detach().numpy(), many.detach().numpy())


def test_a_step_leaves_the_dtype():
    for kind in EVERY:
        weight = parameter(1.0, 2.0, dtype="float32")
        optimizer = kind([weight])
        weight.grad = tensor(np.ones(2, "float32"))
        optimizer.step()
        assert weight.dtype == np.float32
        assert all(t.dtype == np.float32 for t in optimizer.state[weight].values() if not isinstance(t, int))


def test_zero_grad():
    weight = parameter(1.0)
    optimizer = optim.SGD([weight])
    (weight * 2).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad.tolist() == [0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_groups_have_options_of_their_own():
    slow, fast = parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([{"params": slow}, {"params": [fast], "lr": 0.5}], lr=0.1)
    step_with(optimizer, {slow: np.ones(1), fast: np.ones(1)})
    assert slow.item() == 0.9 and fast.item() == 0.5
    late = parameter(1.0)
    optimizer.add_param_group({"params": [late], "lr": 0.25})
    optimizer.param_groups[0]["lr"] = 1.0
    step_with(optimizer, {late: np.ones(1), slow: np.ones(1)})
    assert late.item() == 0.75 and np.isclose(slow.item(), -0.1)
    assert "Parameter Group 2" in repr(optimizer) and "lr: 0.25" in repr(optimizer)


def test_named_parameters():
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is net.weight


W = parameter(1.0)


def complex_parameter():
    return tensor(np.ones((2, 2), np.complex128)).requires_grad_()


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda: optim.SGD(W), TypeError, "one tensor; put it in a list"),
        (lambda: optim.SGD([]), ValueError, "params is empty"),
        (lambda: optim.SGD([W, 3]), TypeError, r"params\[1\] must be a tensor, not int"),
        (lambda: optim.SGD([W * 2]), ValueError, r"params\[0\] is the result of a recorded operation"),
        (lambda: optim.SGD([W, W]), UserWarning, "a parameter is in its group twice"),
        (
            lambda: optim.SGD([{"params": [W]}, {"params": [W]}]),
            ValueError,
            r"params\[0\], of shape \(1,\), is in another group",
        ),
        (lambda: optim.SGD([("a", W), parameter(1.0)]), ValueError, r"params\[1\] has no name, and others have one"),
        (lambda: optim.SGD([{"params": [("a", W)]}, {"params": [parameter(1.0)]}]), ValueError, "names, or none"),
        (lambda: optim.SGD([W]).add_param_group({"params": [("a", parameter(1.0))]}), ValueError, "names, or none"),
        (lambda: optim.SGD([W], lr=tensor([0.1, 0.2])), ValueError, r"tensor of one element.*\(2,\)"),
        (lambda: optim.Adam([W], betas=(tensor(0.9), 0.99)), ValueError, "two numbers or two tensors"),
        (lambda: optim.SparseAdam([parameter(1.0).to_sparse().detach()]), ValueError, r"params\[0\] is sparse"),
        (lambda: optim.SparseAdam([complex_parameter()]), ValueError, r"params\[0\] is complex"),
        (lambda: optim.Muon([complex_parameter()]), RuntimeError, "Muon takes real matrices"),
        (lambda: optim.SGD([{"params": {W}}]), TypeError, "a set of parameters has no order"),
        (lambda: optim.SGD([W]).add_param_group([W]), TypeError, "must be a dict, not list"),
        (lambda: optim.SGD([W], lr=-1), ValueError, "lr must be at least 0, and you gave -1"),
        (lambda: optim.SGD([W], momentum=-1), ValueError, "momentum must be at least 0"),
        (lambda: optim.SGD([W], nesterov=True), ValueError, "nesterov needs momentum above 0 and dampening 0"),
        (lambda: optim.SGD([W], differentiable=True), ValueError, "differentiable=False"),
        (lambda: optim.Adam([W], betas=(0.9, 1.0)), ValueError, r"betas\[1\] must be at least 0 and below 1"),
        (lambda: optim.Adam([W], eps=float("nan")), ValueError, "eps must be at least 0, and you gave nan"),
        (lambda: optim.AdamW([W], weight_decay=-1), ValueError, "weight_decay must be at least 0"),
        (lambda: optim.Adagrad([W], lr_decay=-1), ValueError, "lr_decay must be at least 0"),
        (lambda: optim.Adam([W]).load_state_dict(optim.Adam([W, parameter(1.0)]).state_dict()), ValueError, r"\[2\]"),
        (lambda: step_with(optim.Optimizer([W], {}), {W: np.ones(1)}), NotImplementedError, "must define update"),
    ],
)
def test_misuse_is_told(act, error, message):
    with pytest.raises(error, match=message):
        act()


def stepped(kind=optim.Adam, **options):
    weights = [parameter(1.0, 2.0), parameter(3.0)]
    optimizer = kind(weights, **options)
    step_with(optimizer, {weights[1]: np.ones(1)})
    return weights, optimizer


def test_state_dicts_number_the_parameters():
    _, optimizer = stepped(lr=0.1)
    state = optimizer.state_dict()
    assert list(state["state"]) == [1] and state["state"][1]["step"] == 1
    assert state["param_groups"][0]["params"] == [0, 1] and state["param_groups"][0]["lr"] == 0.1


def test_loading_copies_the_state():
    (_, weight), optimizer = stepped(lr=0.1)
    single = [parameter(1.0, 2.0, dtype="float32"), parameter(3.0, dtype="float32")]
    other = optim.Adam(single)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["lr"] == 0.1 and other.param_groups[0]["params"] == single
    average = other.state[single[1]]["exp_avg"]
    assert average.dtype == np.float32 and average is not optimizer.state[weight]["exp_avg"]


@pytest.mark.parametrize(
    "value", [2.0, [2.0], [1.0, 2.0], [1.0 + 2j, 2.0 - 1j]], ids=["number", "one", "two", "complex"]
)
@pytest.mark.parametrize("kind", [optim.ASGD, optim.NAdam, optim.Adam, optim.RAdam])
def test_numbers_of_a_state_may_be_tensors_as_in_pytorch(kind, value):
    weight, other = (tensor(np.array(value)).requires_grad_() for _ in range(2))
    optimizer, loaded = kind([weight], lr=0.1), kind([other], lr=0.1)
    for _ in range(3):
        step_with(optimizer, {weight: np.array(value)})
    state = optimizer.state_dict()
    in_tensors = {
        name: tensor(float(item)) if isinstance(item, (int, float)) else item
        for name, item in state["state"][0].items()
    }
    loaded.load_state_dict({**state, "state": {0: in_tensors}})
    other.data = weight.detach().clone()
    step_with(optimizer, {weight: np.array(value)})
    step_with(loaded, {other: np.array(value)})
    np.testing.assert_allclose(other.detach().numpy(), weight.detach().numpy(), rtol=1e-6)


def test_a_sparse_gradient_of_a_number():
    for kind in (optim.SparseAdam, optim.SGD, optim.Adagrad):
        weight = tensor(2.0).requires_grad_()
        optimizer = kind([weight], lr=0.1)
        weight.grad = tensor(1.0).to_sparse()
        optimizer.step()
        assert np.isclose(weight.item(), 1.9) and weight.shape == ()


def test_a_parameter_twice_in_a_group_has_two_steps():
    weight = parameter(1.0)
    with pytest.warns(UserWarning, match="twice"):
        optimizer = optim.SGD([weight, weight], lr=0.1)
    step_with(optimizer, {weight: np.ones(1)})
    assert np.isclose(weight.item(), 0.8)


def test_loading_a_state_that_does_not_fit():
    _, optimizer = stepped()
    other = optim.Adam([parameter(1.0), parameter(1.0, 2.0)])
    with pytest.raises(ValueError, match=r"'exp_avg' of parameter 1 .*\(1,\).*\(2,\)"):
        other.load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))])
def test_copies_keep_their_state(duplicate):
    (_, weight), optimizer = duplicate(stepped())
    assert optimizer.param_groups[0]["params"][1] is weight
    assert optimizer.state[weight]["step"] == 1
    before = weight.item()
    step_with(optimizer, {weight: np.ones(1)})
    assert weight.item() != before and optimizer.state[weight]["step"] == 2


def test_zero_dimensions_and_no_elements():
    for kind in EVERY:
        scalar, empty = tensor(np.array(2.0), requires_grad=True), tensor(zeros(0, 3), requires_grad=True)
        optimizer = kind([scalar, empty], lr=0.1)
        step_with(optimizer, {scalar: np.array(1.0), empty: np.zeros((0, 3))})
        (scalar * scalar).backward()
        optimizer.step()
        assert scalar.shape == () and scalar.item() < 2


def test_hooks_of_steps_and_states():
    seen = []
    _, optimizer = stepped()
    handles = [
        optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
        optimizer.register_step_post_hook(lambda *_: seen.append("after")),
        optimizer.register_state_dict_pre_hook(lambda _: seen.append("saving")),
        optimizer.register_state_dict_post_hook(lambda _, state: {**state, "note": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda _, state: seen.append(state.pop("note"))),
        optimizer.register_load_state_dict_post_hook(lambda _: seen.append("loaded")),
        optimizer.register_step_pre_hook(lambda *_: seen.append("last")),
    ]
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen == ["before", "last", "after", "saving", 1, "loaded"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert "note" not in optimizer.state_dict() and len(seen) == 6


def test_a_hook_before_a_step_may_change_its_arguments():
    weight = parameter(1.0)
    optimizer = optim.SGD([weight], lr=1.0)
    weight.grad = ones(1, dtype="float64")
    handle = optimizer.register_step_pre_hook(lambda me, args, kwargs: ((me, lambda: args[1]() * 2), kwargs))
    assert optimizer.step(lambda: 21) == 42
    handle.remove()
    optimizer.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match="in a pair; it returned 3"):
        optimizer.step()


def test_copies_have_no_hooks():
    optimizer = optim.SGD([parameter(1.0)])
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(1))
    lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        other.step()
        other.register_step_post_hook(lambda *_: None)
    assert seen == []


def test_schedulers_and_optimizers_make_no_cycle(no_collector):
    optimizer = optim.SGD([parameter(1.0)])
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.9)
    gone = weakref.ref(scheduler), weakref.ref(optimizer)
    del scheduler, optimizer
    assert [reference() for reference in gone] == [None, None]


def test_a_hook_can_be_put_in_front():
    seen = []
    _, optimizer = stepped()
    optimizer.register_state_dict_pre_hook(lambda _: seen.append(1))
    optimizer.register_state_dict_pre_hook(lambda _: seen.append(0), prepend=True)
    optimizer.state_dict()
    assert seen == [0, 1]


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.RMSprop, optim.Adadelta, optim.Adagrad])
def test_large_and_strided_parameters_are_updated_whole(kind):
    rng = np.random.default_rng(0)
    values, gradients = rng.normal(size=(300, 301)), rng.normal(size=(300, 301))  # several blocks
    options = {"momentum": 0.9} if kind is optim.SGD else {}
    ends = []
    for layout in (np.ascontiguousarray, np.asfortranarray):
        parameter_ = tg_tensor(layout(values))
        optimizer = kind([parameter_], **options)
        for _ in range(3):
            parameter_.grad = tensor(gradients)
            optimizer.step()
        ends.append(parameter_.detach().numpy())
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-14)


def tg_tensor(array):
    return from_numpy(array.copy(order="K")).requires_grad_()


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 3)])
def test_muon_steps_along_all_singular_vectors_alike(shape):
    values = np.random.default_rng(1).normal(size=(2, *shape))
    parameter = tensor(values[0], requires_grad=True)
    optimizer = optim.Muon([parameter], lr=0.1, weight_decay=0.5)
    parameter.grad = tensor(values[1])
    optimizer.step()
    step = (values[0] * 0.95 - parameter.detach().numpy()) / (0.1 * max(1, shape[0] / shape[1]) ** 0.5)
    left, _, right = np.linalg.svd(values[1], full_matrices=False)
    within = left.T @ step @ right.T
    sizes = np.diag(within)
    np.testing.assert_allclose(within, np.diag(sizes), atol=1e-12)
    assert (sizes > 0.5).all() and (sizes < 1.3).all()


def test_muon_takes_matrices_only():
    with pytest.raises(ValueError, match=r"real matrices.* shape \(3,\)"):
        optim.Muon([ones(3, requires_grad=True)])
    with pytest.raises(ValueError, match="adjust_lr_fn must be"):
        optim.Muon([ones(3, 3, requires_grad=True)], adjust_lr_fn="other")
