"""Devices, of which there is one, and the old constructors such as FloatTensor."""

import pickle

import numpy as np
import pytest
import telegrad as tg


def test_a_device_is_its_name():
    device = tg.device("cpu")
    assert device == "cpu" and device.type == "cpu" and device.index is None and repr(device) == "device(type='cpu')"
    second = tg.device("cuda:1")
    assert (second.type, second.index) == ("cuda", 1) and second == tg.device("cuda", 1) == "cuda:1"
    assert repr(second) == "device(type='cuda', index=1)"
    again = pickle.loads(pickle.dumps(second))
    assert type(again) is tg.device and again == second and again.index == 1
    assert tg.device(second) == second


def test_tensors_and_modules_are_on_the_cpu():
    x = tg.zeros(2, device=tg.device("cpu", 0))
    assert x.device == tg.device("cpu") and x.to(x.device, non_blocking=True) is x and x.cpu() is x
    layer = tg.nn.Linear(2, 2)
    assert layer.to(tg.device("cpu")).cpu() is layer


@pytest.mark.parametrize(
    "act",
    [
        lambda: tg.zeros(2, device=tg.device("cuda", 0)),
        lambda: tg.zeros(2).to("cuda"),
        lambda: tg.zeros(2).cuda(),
        lambda: tg.nn.Linear(2, 2).cuda(),
        lambda: tg.nn.Linear(2, 2).to(device="cuda"),
    ],
)
def test_elsewhere_is_an_error(act):
    with pytest.raises(ValueError, match=r"there is no device 'cuda(:0)?'; all tensors are on the cpu"):
        act()


@pytest.mark.parametrize("arguments", [("a:b",), ("cpu:0", 1), ("",), (3,)])
def test_names_that_are_none(arguments):
    with pytest.raises(ValueError, match=r'device\(\) takes "cpu"'):
        tg.device(*arguments)


def test_the_constructors_of_old():
    assert tg.LongTensor([[1, 2]]).dtype == tg.int64 and tg.LongTensor([[1, 2]]).tolist() == [[1, 2]]
    assert tg.FloatTensor(2, 3).shape == (2, 3) and tg.DoubleTensor().shape == (0,)
    assert tg.BoolTensor(np.array([1, 0])).tolist() == [True, False]
    assert tg.Tensor(2, 3, 1, 1).shape == (2, 3, 1, 1) and tg.Tensor(4).shape == (4,) and tg.Tensor().shape == (0,)
    assert tg.Tensor(2, 3).is_leaf and not tg.Tensor(2, 3).requires_grad
    assert tg.nn.Parameter(tg.Tensor(2, 3)).shape == (2, 3)
    with pytest.raises(TypeError, match=r"Tensor\(\) takes .*\(2, -1\)"):
        tg.Tensor(2, -1)


def test_variables_are_tensors():
    x = tg.ones(2)
    v = tg.autograd.Variable(x, requires_grad=True)
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2, 2] and not x.requires_grad and not tg.autograd.Variable(x).requires_grad


def test_types():
    x = tg.zeros(2)
    assert x.type() == "float32" and x.long().type() == "int64"
    assert x.type(tg.float64).dtype == x.type(tg.DoubleTensor).dtype == tg.float64
    assert x.bfloat16().type() == "bfloat16" and tg.nn.Linear(2, 2).bfloat16().weight.dtype == tg.bfloat16


def test_names_that_pytorch_takes_from_numpy():
    x = tg.arange(6.0).reshape(2, 3)
    assert x.sum(axis=0, keepdims=True).tolist() == [[3, 5, 7]] and tg.mean(x, axis=1).tolist() == [1, 4]
    assert tg.cat([x, x], axis=1).shape == (2, 6) and x.argmax(axis=1).tolist() == [2, 2]
    with pytest.raises(TypeError, match=r"sum\(\).*multiple values|sum\(\).*unexpected"):
        x.sum(0, axis=0)


@pytest.mark.parametrize("make", [tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn])
def test_shapes_by_name(make):
    assert make(size=(2, 3)).shape == make(size=[2, 3]).shape == (2, 3)
    with pytest.raises(TypeError, match=r"the shape is given twice: \(2,\) and size=\(3,\)"):
        make(2, size=(3,))
