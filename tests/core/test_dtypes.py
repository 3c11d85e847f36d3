"""Element types: promotion as PyTorch's (tests/golden/record_dtypes.py recorded it), limits, aliases, bfloat16."""

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import recorded

GOLDEN = recorded("dtypes")
NAMES = list(GOLDEN["tables"]["float32"]["promote_types"])
SCALARS = {"bool": True, "int": 3, "float": 1.5, "complex": 1.5j}


def dtype(name):
    return getattr(tg, "bool_" if name == "bool" else name)


def with_dims(name):
    return tg.ones(2, dtype=dtype(name))


def single(name):
    return tg.ones((), dtype=dtype(name))


def names(table):
    # There is no complex type of two half-precision numbers here.
    if isinstance(table, dict):
        return {key: names(value) for key, value in table.items()}
    return {"complex32": "complex64"}.get(table, table)


@pytest.fixture(params=list(GOLDEN["tables"]))
def tables(request):
    tg.set_default_dtype(request.param)
    yield names(GOLDEN["tables"][request.param])
    tg.set_default_dtype("float32")


def check(table, combine):
    wrong = {
        (first, second): (str(combine(first, second)), expected)
        for first, row in table.items()
        for second, expected in row.items()
        if str(combine(first, second)) != expected
    }
    assert not wrong


COMBINED = {
    "promote_types": lambda a, b: tg.promote_types(dtype(a), dtype(b)),
    "tensor_tensor": lambda a, b: tg.result_type(with_dims(a), with_dims(b)),
    "tensor_single": lambda a, b: tg.result_type(with_dims(a), single(b)),
    "single_single": lambda a, b: tg.result_type(single(a), single(b)),
    "tensor_scalar": lambda a, b: tg.result_type(with_dims(a), SCALARS[b]),
    "single_scalar": lambda a, b: tg.result_type(single(a), SCALARS[b]),
    "add": lambda a, b: (with_dims(a) + single(b)).dtype,
    "mul": lambda a, b: (with_dims(a) * SCALARS[b]).dtype,
    "div": lambda a, b: (with_dims(a) / with_dims(b)).dtype,
    "where": lambda a, b: tg.where(tg.tensor([True, False]), with_dims(a), with_dims(b)).dtype,
    "cat": lambda a, b: tg.cat([with_dims(a), with_dims(b)]).dtype,
}


@pytest.mark.parametrize("what", COMBINED)
def test_promotion_of_pairs(tables, what):
    check(tables.get(what, {}), COMBINED[what])


@pytest.mark.parametrize("what", ["sum", "cumsum", "exp", "abs"])
def test_types_of_results(tables, what):
    for name, expected in tables.get(what, {}).items():
        arguments = (0,) if what == "cumsum" else ()
        assert str(getattr(tg, what)(with_dims(name), *arguments).dtype) == expected, name


def test_can_cast():
    for source, row in GOLDEN["tables"]["float32"]["can_cast"].items():
        assert {target: tg.can_cast(dtype(source), dtype(target)) for target in row} == row


def test_limits():
    for name, expected in GOLDEN["finfo"].items():
        about = tg.finfo(dtype(name))
        for key, value in expected.items():
            assert getattr(about, key) == pytest.approx(value, rel=1e-6) if key != "dtype" else about.dtype == value
    for name, expected in GOLDEN["iinfo"].items():
        about = tg.iinfo(dtype(name))
        assert {key: getattr(about, key) for key in expected} == expected
    assert tg.finfo().bits == 32
    assert repr(tg.iinfo(tg.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    with pytest.raises(TypeError, match="iinfo"):
        tg.finfo(tg.int32)
    with pytest.raises(TypeError, match="finfo"):
        tg.iinfo(tg.float32)


def test_aliases():
    pairs = {
        "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
        "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
    }  # fmt: skip
    for alias, name in pairs.items():
        assert getattr(tg, alias) is dtype(name)
        assert getattr(tg.tensor([1]), alias)().dtype is dtype(name)
    assert isinstance(tg.float, tg.dtype)


def test_questions():
    assert tg.is_tensor(tg.ones(1)) and not tg.is_tensor(np.ones(1))
    assert tg.is_floating_point(tg.ones(1)) and not tg.is_floating_point(tg.tensor([1]))
    assert tg.is_complex(tg.tensor([1j])) and tg.tensor([1j]).is_complex() and not tg.ones(1).is_complex()
    assert tg.numel(tg.ones(2, 3)) == tg.ones(2, 3).nelement() == 6
    assert tg.tensor([1], dtype=tg.int8).is_signed() and not tg.tensor([1], dtype=tg.uint8).is_signed()


def test_integers_wrap_around_as_in_pytorch():
    a = tg.tensor([200, 3], dtype=tg.uint8)
    assert (a + 100).tolist() == [44, 103] and (a + 300).tolist() == [244, 47] and (a - 4).dtype == tg.uint8
    assert (
        tg.tensor([100], dtype=tg.int8).sum().item() == 100 and tg.tensor([100, 100], dtype=tg.int8).sum().item() == 200
    )


def test_what_tensors_cannot_hold():
    with pytest.raises(TypeError, match="numbers and booleans"):
        tg.tensor(["a"])
    with pytest.raises(TypeError, match="numbers and booleans"):
        tg.from_numpy(np.zeros(2, [("x", "f4")]))
    with pytest.raises(TypeError, match="floating-point type"):
        tg.set_default_dtype(tg.int64)


def test_without_ml_dtypes(run_python):
    program = """
import sys
sys.modules["ml_dtypes"] = None
import numpy, telegrad as tg
assert not hasattr(tg, "bfloat16") and tg.finfo(tg.float64).bits == 64 and tg.tensor([1.0]).exp().dtype == tg.float32
assert tg.promote_types("float64", "int8") == tg.float64
try:
    tg.tensor(numpy.zeros(2, "V2"))
except TypeError:
    print("refused")
"""
    assert run_python("-c", program) == "refused\n"


class TestBfloat16:
    def test_results_and_gradients_keep_the_type(self):
        a = tg.tensor([0.5, 1.5, -2.0], dtype=tg.bfloat16, requires_grad=True)
        b = tg.tensor([3.0], dtype=tg.bfloat16, requires_grad=True)
        for result in (
            a + 1.5,
            a * b,
            a.exp(),
            a.sigmoid(),
            a.sum(),
            a.mean(),
            a**2,
            a.relu(),
            a.softmax(0),
            a.tanh() / b,
        ):
            assert result.dtype is tg.bfloat16
            (grad,) = tg.autograd.grad(result.sum(), a)
            assert grad.dtype is tg.bfloat16

    def test_values_are_those_of_float32_rounded(self):
        a = tg.tensor([0.5, 1.5, -2.0], dtype=tg.bfloat16, requires_grad=True)
        wide = a.detach().float().requires_grad_()
        for function in (tg.tanh, tg.erf, tg.softplus if hasattr(tg, "softplus") else tg.sin, lambda t: t.norm()):
            one, other = function(a), function(wide)
            np.testing.assert_allclose(one.float().detach().numpy(), other.detach().numpy(), rtol=1e-2)
            pairs = tg.autograd.grad(one.sum(), a)[0].float(), tg.autograd.grad(other.sum(), wide)[0]
            np.testing.assert_allclose(*(each.numpy() for each in pairs), rtol=2e-2, atol=1e-2)

    def test_beside_other_types(self):
        a = tg.ones(2, dtype=tg.bfloat16, requires_grad=True)
        (a * tg.ones(2)).sum().backward()
        assert a.grad.dtype is tg.bfloat16 and (a * tg.ones(2)).dtype is tg.float32
        assert repr(a.detach()) == "tensor([1., 1.], dtype=bfloat16)"
        assert a.is_floating_point() and (a > 0.5).tolist() == [True, True]

    def test_conversion_is_recorded(self):
        x = tg.tensor([1.0, 2.0], requires_grad=True)
        (x.to(tg.bfloat16) * 2).sum().backward()
        assert x.grad.dtype is tg.float32 and x.grad.tolist() == [2.0, 2.0]
