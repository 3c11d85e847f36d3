"""The functions of nn.functional compute what PyTorch's do, gradients too; tests/golden/record_functional.py recorded that."""

import json
from pathlib import Path

import numpy as np
import pytest
from telegrad.core import Tensor, arange, autograd, tensor
from telegrad.nn import functional

CASES = json.loads((Path(__file__).parent / "golden" / "functional.json").read_text())["cases"]


def opened(value):
    """Arguments from JSON."""
    if isinstance(value, dict):
        return tensor(np.array(value["data"], value["dtype"]), requires_grad=value["grad"])
    return value


@pytest.mark.parametrize("case", CASES, ids=[f"{case['function']}{n}" for n, case in enumerate(CASES)])
def test_values_and_gradients(case):
    args = [opened(arg) for arg in case["args"]]
    kwargs = {name: opened(value) for name, value in case["kwargs"].items()}
    value = getattr(functional, case["function"])(*args, **kwargs)
    np.testing.assert_allclose(value.detach().numpy(), case["value"], rtol=1e-12, atol=1e-12)
    leaves = [arg for arg in args if isinstance(arg, Tensor) and arg.requires_grad]
    factors = arange(1, value.numel() + 1, dtype="float64").reshape(value.shape)
    for grad, expected in zip(autograd.grad((value * factors).sum(), leaves), case["grads"]):
        np.testing.assert_allclose(grad.numpy(), expected, rtol=1e-11, atol=1e-12)
