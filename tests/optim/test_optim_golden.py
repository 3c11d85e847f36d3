"""Every optimizer goes where PyTorch's goes; tests/golden/record_optimizers.py recorded that."""

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import assert_close, recorded
from helpers.steps import step_with
from telegrad import optim
from telegrad.core import cat, tensor

GOLDEN = recorded("optimizers")
STEPS = 20


def label(case):
    return case["optimizer"] + "".join(f"-{name}={value}" for name, value in case["options"].items())


def gradient(value, step):
    return value * 0.75 - 1.5 + 0.5 * (step % 3 - 1)


def start(case, dtype="float64"):
    parameters = [tensor(np.array(values, dtype), requires_grad=True) for values in GOLDEN["start"]]
    return parameters, getattr(optim, case["optimizer"])(parameters, **case["options"])


def advance(parameters, optimizer, step):
    for parameter in parameters:
        parameter.grad = gradient(parameter.detach(), step)
    optimizer.step()


def assert_recorded(parameters, case, step):
    for parameter, expected in zip(parameters, case["path"].get(str(step), ())):
        assert_close(parameter, expected)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_in_place(case):
    parameters, optimizer = start(case)
    for step in range(1, STEPS + 1):
        advance(parameters, optimizer, step)
        assert_recorded(parameters, case, step)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_tensors_as_options(case):
    parameters, optimizer = start(case)
    for group in optimizer.param_groups:
        group["lr"] = tensor(np.asarray(group["lr"]))
        if "betas" in group:
            group["betas"] = tuple(tensor(np.asarray(beta)) for beta in group["betas"])
    for step in range(1, STEPS + 1):
        advance(parameters, optimizer, step)
        assert_recorded(parameters, case, step)


@pytest.mark.parametrize("case", [case for case in GOLDEN["cases"] if case["optimizer"] != "Adafactor"], ids=label)
def test_complex_parameters(case):
    """Complex parameters go where pairs of real parameters go, and their state is complex."""
    real = tensor(np.array([[0.5, -1.25], [3.0, 2.0], [-0.75, 1.5]]), requires_grad=True)
    whole = tensor(real.detach().numpy().view(np.complex128)[:, 0].copy(), requires_grad=True)
    optimizers = [getattr(optim, case["optimizer"])([parameter], **case["options"]) for parameter in (real, whole)]
    for step in range(1, STEPS + 1):
        real.grad = gradient(real.detach(), step)
        whole.grad = tensor(real.grad.numpy().copy().view(np.complex128)[:, 0])
        for optimizer in optimizers:
            optimizer.step()
        np.testing.assert_allclose(whole.detach().numpy().view(np.float64).reshape(3, 2), real.detach().numpy())
    for value in optimizers[1].state[whole].values():
        assert not isinstance(value, tg.Tensor) or (value.shape, value.dtype) == ((3,), np.complex128)


def test_adafactor_refuses_complex_parameters():
    with pytest.raises(RuntimeError, match="complex"):
        optim.Adafactor([tensor(np.ones(2, complex), requires_grad=True)])


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_with_complex_parameters_and_a_tensor_as_rate(search):
    real = tensor(np.array([[0.5, -1.25], [3.0, 2.0]]), requires_grad=True)
    whole = tensor(real.detach().numpy().view(np.complex128)[:, 0].copy(), requires_grad=True)
    for parameter, parts in ((real, lambda p: p), (whole, tg.view_as_real)):
        optimizer = optim.LBFGS([parameter], lr=tensor(np.array(0.5)), line_search_fn=search)

        def closure(parameter=parameter, parts=parts, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((parts(parameter) ** 2 - 1) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
    np.testing.assert_allclose(whole.detach().numpy().view(np.float64).reshape(2, 2), real.detach().numpy(), rtol=1e-9)
    assert "al" in optimizer.state[whole]


@pytest.mark.parametrize(
    "max_eval, evaluations, losses",
    [
        (1, [2, 4, 6, 8], [355.7, 199.58289, 151.79293, 13.741407]),
        (3, [4, 7, 10, 13], [355.7, 10.060499, 5.1538768, 4.3515988]),
        (7, [7, 14, 21, 28], [355.7, 4.5874256, 4.2628555, 4.24013]),
    ],
)
def test_max_eval_limits_the_line_search_of_lbfgs(max_eval, evaluations, losses):
    """The numbers are those of PyTorch 2.13."""
    x = tensor(np.array([-1.2, 1, 0.5, 2]), requires_grad=True)
    optimizer = optim.LBFGS([x], lr=0.5, max_eval=max_eval, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        return loss

    for expected, loss in zip(evaluations, losses):
        assert optimizer.step(closure).item() == pytest.approx(loss, rel=1e-6)
        assert optimizer.state[x]["func_evals"] == expected


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_resumed_from_a_state_dict(case):
    parameters, optimizer = start(case)
    for step in range(1, STEPS + 1):
        advance(parameters, optimizer, step)
        if step == 2:
            state = optimizer.state_dict()
            _, optimizer = start(case)
            optimizer = type(optimizer)(parameters)
            optimizer.load_state_dict(state)
        assert_recorded(parameters, case, step)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_in_single_precision(case):
    parameters, optimizer = start(case, "float32")
    for step in range(1, STEPS + 1):
        advance(parameters, optimizer, step)
    for parameter, expected in zip(parameters, case["single"]):
        assert parameter.dtype == np.float32
        np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-6, atol=1e-6)


def tensors(value):
    """A recorded state, with tensors where PyTorch has them."""
    if isinstance(value, dict):
        return {key: tensors(item) for key, item in value.items()}
    return value if value is None else tensor(np.array(value))


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_states_are_those_of_pytorch(case):
    parameters, optimizer = start(case)
    for step in range(1, GOLDEN["saved"] + 1):
        advance(parameters, optimizer, step)
    state = optimizer.state_dict()["state"]
    assert {str(number): set(entries) for number, entries in state.items()} == {
        number: set(entries) for number, entries in case["state"].items()
    }
    for number, entries in state.items():
        for name, entry in entries.items():
            np.testing.assert_allclose(np.asarray(entry), case["state"][str(number)][name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_going_on_from_a_state_of_pytorch(case):
    saved = GOLDEN["saved"]
    parameters, optimizer = start({**case, "options": case["options"]})
    for parameter, values in zip(parameters, case["path"][str(saved)]):
        parameter.data = tensor(np.array(values))
    state = {int(number): tensors(entries) for number, entries in case["state"].items()}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    for step in range(saved + 1, STEPS + 1):
        advance(parameters, optimizer, step)
        assert_recorded(parameters, case, step)


def valley(parameters):
    a, b = parameters
    flat = cat([a, b.reshape(-1)]) * 0.5
    return ((1 - flat[:-1]) ** 2 + 10 * (flat[1:] - flat[:-1] ** 2) ** 2).sum()


def bowl(parameters):
    a, b = parameters
    flat = cat([a, b.reshape(-1)])
    steepness = tg.arange(1, 8, dtype=flat.dtype) / 4
    return (steepness * (flat - 1) ** 2 + (flat - 0.5) ** 4 / 16).sum() + (flat[1:] * flat[:-1]).sum() / 8


def closing(parameters, optimizer, shape=valley):
    def closure():
        optimizer.zero_grad()
        loss = shape(parameters)
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("case", GOLDEN["closures"], ids=label)
def test_steps_of_several_evaluations(case):
    parameters, optimizer = start(case)
    closure = closing(parameters, optimizer)
    losses = [optimizer.step(closure).item() for _ in range(STEPS)]
    # Sums are added up in another order, and each of up to 20 evaluations in a step multiplies the rounding errors.
    np.testing.assert_allclose(losses[:3], case["losses"][:3], rtol=1e-8)
    np.testing.assert_allclose(losses, case["losses"], rtol=1e-5, atol=1e-7)
    for parameter, expected in zip(parameters, case["end"]):
        np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("case", GOLDEN["bowls"], ids=label)
def test_steps_of_several_evaluations_where_rounding_errors_do_not_grow(case):
    parameters, optimizer = start(case)
    losses = [optimizer.step(closing(parameters, optimizer, bowl)).item() for _ in range(STEPS)]
    np.testing.assert_allclose(losses, case["losses"], rtol=1e-12, atol=1e-12)
    for parameter, expected in zip(parameters, case["end"]):
        assert_close(parameter, expected)


@pytest.mark.parametrize("case", GOLDEN["closures"], ids=label)
def test_a_learned_curvature_is_saved(case, tmp_path):
    parameters, optimizer = start(case)
    ends = []
    for step in range(6):
        if step == 3:
            tg.save(optimizer.state_dict(), tmp_path / "state.safetensors")
            copies = [parameter.detach().clone().requires_grad_() for parameter in parameters]
        optimizer.step(closing(parameters, optimizer))
    ends = [parameter.detach().numpy() for parameter in parameters]
    again = optim.LBFGS(copies)
    again.load_state_dict(tg.load(tmp_path / "state.safetensors"))
    for _ in range(3):
        again.step(closing(copies, again))
    for copy, end in zip(copies, ends):
        np.testing.assert_array_equal(copy.detach().numpy(), end)


@pytest.mark.parametrize("case", GOLDEN["sparse"], ids=label)
def test_sparse_gradients(case):
    parameter = tensor(np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 3.0]]), requires_grad=True)
    optimizer = getattr(optim, case["optimizer"])([parameter], **case["options"])
    for step in range(STEPS):
        values = tensor(np.array([[0.5 + step % 4, -1.0], [0.25, 0.125 * step]]))
        gradient = tg.sparse_coo_tensor([GOLDEN["rows"][step % len(GOLDEN["rows"])]], values, parameter.shape)
        parameter.grad = gradient
        optimizer.step()
    np.testing.assert_allclose(parameter.detach().numpy(), case["end"], rtol=1e-12, atol=1e-12)


def test_a_gradient_sparse_in_every_dimension():
    ends = []
    for sparse in (1, 2):
        parameter = tensor(np.ones((3, 2), "float32"), requires_grad=True)
        optimizer = optim.SparseAdam([parameter], lr=0.1)
        dense = tensor(np.array([[1.0, -2.0], [0, 0], [3, 4]], "float32"))
        for _ in range(3):
            step_with(optimizer, {parameter: dense.to_sparse(sparse)})
        assert parameter.dtype == np.float32
        ends.append(parameter.detach().numpy())
    np.testing.assert_array_equal(*ends)
    assert ends[0][1].tolist() == [1, 1]


@pytest.mark.parametrize("kind", [optim.Adam, optim.RMSprop, optim.Rprop])
def test_dense_optimizers_refuse_sparse_gradients(kind):
    parameter = tensor(np.zeros((3, 2)), requires_grad=True)
    gradient = tg.sparse_coo_tensor([[0]], [[1.0, 2.0]], (3, 2))
    with pytest.raises(RuntimeError, match=f"{kind.__name__} does not take sparse gradients; use SparseAdam"):
        step_with(kind([parameter]), {parameter: gradient})


def test_sparse_adam_refuses_dense_gradients():
    parameter = tensor(np.zeros((3, 2)), requires_grad=True)
    with pytest.raises(RuntimeError, match=r"SparseAdam .*dense gradients"):
        step_with(optim.SparseAdam([parameter]), {parameter: np.ones((3, 2))})


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adagrad])
def test_weight_decay_needs_dense_gradients(kind):
    parameter = tensor(np.zeros((3, 2)), requires_grad=True)
    gradient = tg.sparse_coo_tensor([[0]], [[1.0, 2.0]], (3, 2))
    with pytest.raises(RuntimeError, match="only without weight_decay"):
        step_with(kind([parameter], weight_decay=0.1), {parameter: gradient})
