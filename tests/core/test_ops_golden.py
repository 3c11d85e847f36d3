"""Operations compute what PyTorch's do, gradients too; tests/golden/record_ops_*.py recorded that."""

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import TOLERANCES, assert_close, recorded


def load(name):
    text = recorded(name)
    for number, case in enumerate(text["cases"]):
        arguments = [*map(str, case["args"]), *(f"{key}={value}" for key, value in case["kwargs"].items())]
        yield pytest.param(text["inputs"], case, id=f"{case['function']}({','.join(arguments)})-{number}")


CASES = [case for name in ("ops_elementwise", "ops_reductions") for case in load(name)]


def opened(dtype, data):
    if dtype.startswith("complex"):
        array = np.asarray(data, np.float64)
        return np.ascontiguousarray(array).view(np.complex128)[..., 0].astype(dtype)
    return np.asarray(data, dtype)


def weighted(outputs):
    total = 0
    for output in outputs:
        factors = (tg.arange(1, output.numel() + 1, dtype="float64") / 8).reshape(output.shape).to(output.dtype)
        term = output * (factors * (1 + 0.5j) if output.is_complex() else factors)
        total = total + (tg.view_as_real(term).sum() if term.is_complex() else term.sum())
    return total


def assert_recorded(found, expected, tolerance=None):
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_recorded(one, other, tolerance)
    elif isinstance(expected, dict):
        assert str(found.dtype) == expected["dtype"]
        single = expected["dtype"] in ("float32", "complex64")
        tolerance = tolerance or TOLERANCES["float32" if single else "float64"]
        assert_close(found, opened(expected["dtype"], expected["data"]), tolerance)
    else:
        assert found == expected


@pytest.mark.parametrize(("inputs", "case"), CASES)
def test_values_and_gradients(inputs, case):
    def tensor(value):
        return tg.tensor(opened(*inputs[value])) if isinstance(value, str) and value in inputs else value

    args = [tensor(value) for value in case["args"]]
    kwargs = {key: tensor(value) for key, value in case["kwargs"].items()}
    leaves = [arg for arg in args if isinstance(arg, tg.Tensor) and (arg.is_floating_point() or arg.is_complex())]
    for leaf in leaves:
        leaf.requires_grad_("grads" in case)
    function = getattr(tg, case["function"])
    if "error" in case:
        with pytest.raises((TypeError, ValueError, IndexError, ZeroDivisionError, RuntimeError)):
            function(*args, **kwargs)
        return
    value = function(*args, **kwargs)
    assert_recorded(value, case["value"], case.get("tolerance"))
    if "grads" in case:
        outputs = value if isinstance(value, tuple) else (value,)
        outputs = [output for output in outputs if output.requires_grad]
        total = weighted(outputs)
        grads = tg.autograd.grad(total, leaves, allow_unused=True) if outputs else [None] * len(leaves)
        for grad, expected in zip(grads, case["grads"]):
            if expected is None:  # torch says of some constant functions that the gradient is missing
                assert grad is None or not grad.numpy().any()
            else:
                assert_recorded(grad, expected, case.get("tolerance"))
