"""The functions of nn.functional compute what PyTorch's do, gradients too; tests/golden/record_functional.py recorded that."""

import json
from pathlib import Path

import numpy as np
import pytest
from telegrad.core import Tensor, arange, autograd, tensor
from telegrad.nn import functional

CASES = json.loads((Path(__file__).parents[1] / "golden" / "functional.json").read_text())["cases"]


def opened(value, dtype):
    """Arguments from JSON."""
    if isinstance(value, dict):
        kind = dtype if value["dtype"] == "float64" else value["dtype"]
        return tensor(np.array(value["data"], kind), requires_grad=value["grad"])
    return value


def compare(found, expected, precision):
    largest = max(1.0, np.abs(expected).max(initial=0))
    assert found.dtype == ("float64" if precision < 1e-9 else "float32")
    np.testing.assert_allclose(found.numpy(force=True), expected, rtol=precision, atol=precision * largest)


@pytest.mark.parametrize("dtype, precision", [("float64", 1e-12), ("float32", 1e-6)])
@pytest.mark.parametrize("case", CASES, ids=[f"{case['function']}{n}" for n, case in enumerate(CASES)])
def test_values_and_gradients(case, dtype, precision):
    args = [opened(arg, dtype) for arg in case["args"]]
    kwargs = {name: opened(value, dtype) for name, value in case["kwargs"].items()}
    value = getattr(functional, case["function"])(*args, **kwargs)
    compare(value, case["value"], precision)
    leaves = [arg for arg in args if isinstance(arg, Tensor) and arg.requires_grad]
    factors = arange(1, value.numel() + 1, dtype=dtype).reshape(value.shape)
    for grad, expected in zip(autograd.grad((value * factors).sum(), leaves), case["grads"]):
        compare(grad, expected, precision)
