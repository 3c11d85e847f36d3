"""Shapes, indexing, linear algebra and others are as in PyTorch, gradients too; tests/golden/record_*.py recorded that."""

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import assert_close, largest, recorded, weighted_sum
from telegrad.nn import functional

CASES = [
    pytest.param(case, id=f"{topic}{number} {case['expression']}")
    for topic in ("shapes", "indexing", "linalg", "sampled")
    for number, case in enumerate(recorded(topic)["cases"])
]


class Library:
    """``tg`` in expressions, where the functions of ``nn`` have the names of ``torch.nn``."""

    def __getattr__(self, name):
        return getattr(tg, name)

    class nn:
        functional = functional


def evaluate(expression, inputs):
    names = {"tg": Library(), "i": tg.tensor, "b": tg.tensor, "inf": float("inf"), **dict(zip("xyz", inputs))}
    return eval(expression, names)


def real(value):
    return tg.view_as_real(value) if value.dtype.kind == "c" else value


def total(value):
    if isinstance(value, tg.Tensor):
        if not value.requires_grad:
            return 0
        return weighted_sum(real(value))
    return sum(total(each) for each in value)


def assert_recorded(value, wanted, tolerance):
    if not isinstance(value, tg.Tensor):
        assert len(value) == len(wanted)
        for each, other in zip(value, wanted):
            assert_recorded(each, other, tolerance)
        return
    expected = np.array(wanted["data"]).reshape(wanted["shape"])
    if tolerance < 1e-9:
        assert str(real(value).dtype) == wanted["dtype"]
    scale = largest(expected) if np.isfinite(expected).all() else 1
    assert_close(real(value), expected, tolerance, scale)


@pytest.mark.filterwarnings("ignore:.*singular")
@pytest.mark.parametrize("case", CASES)
def test_float64(case):
    inputs = [tg.tensor(np.array(x["data"]).reshape(x["shape"]), requires_grad=True) for x in case["inputs"]]
    value = evaluate(case["expression"], inputs)
    assert_recorded(value, case["value"], 1e-12)
    loss = total(value)
    recorded = isinstance(loss, tg.Tensor)
    grads = tg.autograd.grad(loss, inputs, allow_unused=True) if recorded else [None] * len(inputs)
    for grad, wanted in zip(grads, case["grads"]):
        if grad is None or wanted is None:  # no gradient is as good as zeros
            assert not np.any(wanted["data"] if grad is None and wanted else 0 if grad is None else grad.numpy())
        else:
            assert_recorded(grad, wanted, 1e-12)


@pytest.mark.parametrize("case", CASES)
def test_float32(case):
    if "float64" in case["expression"]:
        return
    inputs = [tg.tensor(np.array(x["data"], np.float32).reshape(x["shape"])) for x in case["inputs"]]
    assert_recorded(evaluate(case["expression"], inputs), case["value"], 1e-6)
