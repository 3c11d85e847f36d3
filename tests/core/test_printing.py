"""Tensors are printed as PyTorch prints them; tests/golden/record_printing.py recorded that."""

import pytest
import telegrad as tg
from helpers.golden import recorded
from telegrad import nn

CASES = recorded("printing")["cases"]
NAMES = {"tg": tg, "nan": float("nan"), "inf": float("inf")}


@pytest.fixture(autouse=True)
def usual_options():
    yield
    tg.set_printoptions(profile="default")


@pytest.mark.parametrize(("options", "expression", "text"), CASES, ids=lambda value: str(value)[:40])
def test_printed_as_pytorch_does(options, expression, text):
    tg.set_printoptions(**options)
    assert repr(eval(expression, NAMES)) == text


def test_what_autograd_knows():
    a = tg.ones(1, requires_grad=True)
    assert repr(a * 2) == "tensor([2.], grad_fn=<MulBackward>)"
    assert repr((a * 2).detach()) == "tensor([2.])"
    long = tg.full((9,), 1 / 3, dtype=tg.float64, requires_grad=True)
    assert repr(long).endswith("0.3333],\n       dtype=float64, requires_grad=True)")


def test_subclasses_show_their_name():
    class Meters(tg.Tensor):
        pass

    assert repr(tg.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Meters)) == "Meters([[1., 2.],\n        [3., 4.]])"
    assert "1." in repr(nn.Parameter(tg.ones(1)))


def test_formats():
    assert f"{tg.tensor(2.5):.2f}" == "2.50" and f"{tg.tensor(2.5)}" == "tensor(2.5000)"
    assert str(tg.tensor(1)) == "tensor(1)"


def test_options_must_exist():
    with pytest.raises(ValueError, match="default, short, full"):
        tg.set_printoptions(profile="long")


def test_the_default_dtype_is_left_out():
    tg.set_default_dtype(tg.float64)
    try:
        assert repr(tg.ones(1)) == "tensor([1.])" and repr(tg.ones(1).float()) == "tensor([1.], dtype=float32)"
        assert repr(tg.tensor([1j])) == "tensor([0.+1.j])"
    finally:
        tg.set_default_dtype(tg.float32)
