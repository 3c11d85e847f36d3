"""Every optimizer goes where PyTorch's goes, in place and replacing; tests/golden/record_optimizers.py recorded that."""

import json
from pathlib import Path

import numpy as np
import pytest
from telegrad import optim
from telegrad.core import tensor

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
