"""The functions of nn.functional compute what PyTorch's do, gradients too; tests/golden/record_functional.py recorded that."""

import numpy as np
import pytest
from helpers.golden import TOLERANCES, assert_close, largest, recorded, weighted_sum
from telegrad.core import Tensor, autograd, tensor
from telegrad.nn import functional

CASES = recorded("functional")["cases"]


def opened(value, dtype):
    """Arguments from JSON."""
    if isinstance(value, dict):
        kind = dtype if value["dtype"] == "float64" else value["dtype"]
        return tensor(np.array(value["data"], kind), requires_grad=value["grad"])
    return value


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", CASES, ids=[f"{case['function']}{n}" for n, case in enumerate(CASES)])
def test_values_and_gradients(case, dtype):
    args = [opened(arg, dtype) for arg in case["args"]]
    kwargs = {name: opened(value, dtype) for name, value in case["kwargs"].items()}
    value = getattr(functional, case["function"])(*args, **kwargs)
    leaves = [arg for arg in args if isinstance(arg, Tensor) and arg.requires_grad]
    grads = autograd.grad(weighted_sum(value), leaves)
    for found, expected in zip([value, *grads], [case["value"], *case["grads"]]):
        assert found.dtype == dtype
        assert_close(found, expected, TOLERANCES[dtype], largest(expected))
