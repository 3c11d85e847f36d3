"""Every optimizer goes where PyTorch's goes, in place and replacing; tests/golden/record_optimizers.py recorded that."""

import json
from pathlib import Path

import numpy as np
import pytest
from telegrad import optim
from telegrad.core import cat, tensor

GOLDEN = json.loads((Path(__file__).parent / "golden" / "optimizers.json").read_text())
STEPS = 20


def label(case):
    return case["optimizer"] + "".join(f"-{name}={value}" for name, value in case["options"].items())


def gradient(value, step):
    return value * 0.75 - 1.5 + 0.5 * (step % 3 - 1)


def start(case):
    parameters = [tensor(np.array(values), requires_grad=True) for values in GOLDEN["start"]]
    return parameters, getattr(optim, case["optimizer"])(parameters, **case["options"])


def compare(parameters, case, step):
    for parameter, expected in zip(parameters, case["path"].get(str(step), ())):
        np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_in_place(case):
    parameters, optimizer = start(case)
    for step in range(1, STEPS + 1):
        for parameter in parameters:
            parameter.grad = gradient(parameter.detach(), step)
        optimizer.step()
        compare(parameters, case, step)


@pytest.mark.parametrize("replace", [True, False], ids=["replacing", "in place"])
@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_with_gradients_from_elsewhere(case, replace):
    parameters, optimizer = start(case)
    for step in range(1, STEPS + 1):
        grads = {parameter: gradient(parameter.detach(), step) for parameter in parameters}
        optimizer.step_with(grads, replace=replace)
        compare(parameters, case, step)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_resumed_from_a_state_dict(case):
    parameters, optimizer = start(case)
    for step in range(1, STEPS + 1):
        for parameter in parameters:
            parameter.grad = gradient(parameter.detach(), step)
        optimizer.step()
        if step == 2:
            state = optimizer.state_dict()
            _, optimizer = start(case)
            optimizer = type(optimizer)(parameters)
            optimizer.load_state_dict(state)
        compare(parameters, case, step)


def valley(parameters):
    a, b = parameters
    flat = cat([a, b.reshape(-1)]) * 0.5
    return ((1 - flat[:-1]) ** 2 + 10 * (flat[1:] - flat[:-1] ** 2) ** 2).sum()


@pytest.mark.parametrize("case", GOLDEN["closures"], ids=label)
def test_steps_of_several_evaluations(case):
    parameters, optimizer = start(case)

    def closure():
        optimizer.zero_grad()
        loss = valley(parameters)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(STEPS)]
    # Sums are added up in another order, and each of up to 20 evaluations in a step multiplies the rounding errors.
    np.testing.assert_allclose(losses[:3], case["losses"][:3], rtol=1e-8)
    np.testing.assert_allclose(losses, case["losses"], rtol=1e-5, atol=1e-7)
    for parameter, expected in zip(parameters, case["end"]):
        np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-5)


class SparseGradient:
    """What optimizers ask of a sparse gradient of a matrix: rows and their values."""

    is_sparse = True

    def __init__(self, rows, values, shape):
        self.rows, self.rows_values, self.shape = rows, np.array(values), shape

    def coalesce(self):
        rows = sorted(set(self.rows))
        values = [sum(v for r, v in zip(self.rows, self.rows_values) if r == row) for row in rows]
        return SparseGradient(rows, values, self.shape)

    def indices(self):
        return tensor([self.rows])

    def values(self):
        return tensor(self.rows_values)


@pytest.mark.parametrize("case", GOLDEN["sparse"], ids=label)
def test_sparse_gradients(case):
    parameter = tensor(np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 3.0]]), requires_grad=True)
    optimizer = getattr(optim, case["optimizer"])([parameter], **case["options"])
    for step in range(STEPS):
        values = [[0.5 + step % 4, -1.0], [0.25, 0.125 * step]]
        gradient = SparseGradient(GOLDEN["rows"][step % len(GOLDEN["rows"])], values, parameter.shape)
        optimizer.step_with({parameter: gradient}, replace=False)
    np.testing.assert_allclose(parameter.detach().numpy(), case["end"], rtol=1e-12, atol=1e-12)


def test_dense_optimizers_refuse_sparse_gradients():
    parameter = tensor(np.zeros((3, 2)), requires_grad=True)
    with pytest.raises(RuntimeError, match="Adam does not take sparse gradients; use SparseAdam"):
        optim.Adam([parameter]).step_with({parameter: SparseGradient([0], [[1.0, 2.0]], (3, 2))})
