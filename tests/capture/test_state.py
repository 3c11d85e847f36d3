"""Objects that a function reads beside its arguments: a change between calls is noticed."""

import array
import collections
import contextvars
import sys
import threading
import types
import weakref

import numpy as np
import pytest
import telegrad as tg
from helpers.compiled import array as numbers
from telegrad import nn, optim

SCALE = 1


class _Object:
    scale = 1

    def method(self):
        return self.scale


class _Table(dict):
    pass


class _Lazy:
    def __init__(self):
        self.table = {"scale": 1}

    def __getattr__(self, name):
        return self.__dict__["table"][name]


class _Meta(type):
    def __call__(cls):
        made = super().__call__()
        made.scale = cls.first
        return made


class _Dropout(nn.Dropout):
    pass


def _with(function, **attributes):
    for name, value in attributes.items():
        setattr(function, name, value)
    return function


def _object():
    one = _Object()
    return lambda x: x * one.scale, lambda: setattr(one, "scale", 2)


def _class():
    kind = type("Kind", (_Object,), {})
    one = kind()
    return lambda x: x * one.scale, lambda: setattr(kind, "scale", 2)


def _metaclass():
    kind = _Meta("Kind", (), {"first": 1})
    return lambda x: x * kind().scale, lambda: setattr(kind, "first", 2)


def _class_of_object():
    one, other = _Object(), type("Other", (_Object,), {"method": lambda self: 2})
    return lambda x: x * one.method(), lambda: setattr(one, "__class__", other)


def _all_attributes():
    one = _Object()
    one.scale = 1
    return lambda x: x * one.scale, lambda: setattr(one, "__dict__", {"scale": 2})


def _optional():
    one = types.SimpleNamespace()
    return lambda x: x * getattr(one, "other", 1), lambda: setattr(one, "other", 2)


def _lazy():
    one = _Lazy()
    return lambda x: x * one.scale, lambda: one.table.update(scale=2)


def _subclass_of_dict():
    one = _Table()
    one.scale = 1
    return lambda x: x * one.scale, lambda: setattr(one, "scale", 2)


def _tensor():
    one = nn.Parameter(tg.ones(3), requires_grad=False)
    one.scale = 1
    return lambda x: x * one.scale, lambda: setattr(one, "scale", 2)


def _flag():
    weights = [tg.ones(3), tg.ones(3)]
    return lambda x: x * sum(each.requires_grad for each in weights), lambda: weights[0].requires_grad_()


def _length():
    weight = tg.ones(3)
    return lambda x: x * len(weight), lambda: setattr(weight, "data", tg.ones(4))


def _function():
    helper = _with(lambda x: x * helper.scale, scale=1)
    return lambda x: helper(x), lambda: setattr(helper, "scale", 2)


def _code():
    def helper(x):
        return x * 2

    return lambda x: helper(x), lambda: setattr(helper, "__code__", (lambda x: x * 3).__code__)


def _default():
    def helper(x, scale=1):
        return x * scale

    return lambda x: helper(x), lambda: setattr(helper, "__defaults__", (2,))


def _numpy():
    one = np.ones(2, np.float32)
    return lambda x: x * float(one[0]), lambda: one.fill(2)


def _array():
    one = array.array("f", [1.0])
    return lambda x: x * one[0], lambda: one.__setitem__(0, 2.0)


def _user_dict():
    one = collections.UserDict(scale=1)
    return lambda x: x * one["scale"], lambda: one.update(scale=2)


def _chain_map():
    first = {"scale": 1}
    one = collections.ChainMap({}, first)
    return lambda x: x * one["scale"], lambda: first.update(scale=2)


def _proxy():
    first = {"scale": 1}
    one = types.MappingProxyType(first)
    return lambda x: x * one["scale"], lambda: first.update(scale=2)


def _of_thread():
    one = threading.local()
    one.scale = 1
    return lambda x: x * one.scale, lambda: setattr(one, "scale", 2)


def _event():
    one = threading.Event()
    return lambda x: x * (1 + one.is_set()), one.set


def _context():
    one = contextvars.ContextVar("one", default=1)
    return lambda x: x * one.get(), lambda: one.set(2)


def _reference():
    one = _Object()
    found = weakref.ref(one)
    return lambda x: x * found().scale, lambda: setattr(one, "scale", 2)


def _in_set():
    one = _Object()
    return lambda x: x * sum(each.scale for each in {one}), lambda: setattr(one, "scale", 2)


def _keys():
    first, table = tg.ones(3), {}
    table[first] = 1
    return lambda x: x * sum(table.values()), lambda: (table.clear(), table.update({tg.ones(3): 2}))


def _imported():
    module = sys.modules["settings_of_a_test"] = types.ModuleType("settings_of_a_test")
    module.SCALE = 1

    def run(x):
        from settings_of_a_test import SCALE

        return x * SCALE

    return run, lambda: setattr(module, "SCALE", 2)


def _forward():
    net = nn.Tanh()
    return lambda x: net(x), lambda: setattr(net, "forward", lambda x: x * 2)


def _own_forward():
    net = type("Net", (nn.Module,), {"forward": lambda self, x: x})()
    return net, lambda: setattr(net, "forward", lambda x: x * 2)


def _inherited():
    net = _Dropout(0.5)
    return net, lambda: setattr(net, "p", 0.0)


def _optimizer():
    class Own(optim.Optimizer):
        @tg.no_grad()
        def step(self):
            for group in self.param_groups:
                for each in group["params"]:
                    each.add_(each.grad, alpha=-group["lr"])

    weight = tg.ones(3, requires_grad=True)
    optimizer = Own([weight], {"lr": 0.1})

    def run(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return weight.detach().clone()

    return run, lambda: optimizer.param_groups[0].update(lr=0.5)


CHANGED = [
    *(_object, _class, _metaclass, _class_of_object, _all_attributes, _optional, _lazy, _subclass_of_dict, _tensor),
    *(_flag, _length, _function, _code, _default, _numpy, _array, _user_dict, _chain_map, _proxy, _of_thread, _event),
    *(_context, _reference, _in_set, _keys, _imported, _forward, _own_forward, _inherited, _optimizer),
]


@pytest.mark.parametrize("make", CHANGED)
def test_changes_between_calls_are_noticed(sides, make):
    def made():
        function, change = make()

        def arguments(call):
            if call == 4:
                change()
            return [tg.tensor(numbers(3, seed=call))]

        return function, list, arguments

    sides.run(made, 7)


@pytest.mark.parametrize(
    ("module", "name", "run"),
    [
        (tg, "exp", lambda x: tg.exp(x)),
        (nn.functional, "relu", lambda x: tg.nn.functional.relu(x)),
        (np, "float64", lambda x: x * np.float64(2)),
    ],
)
def test_a_replaced_function_of_a_library_is_noticed(monkeypatch, module, name, run):
    x, compiled = tg.tensor([-1.0, 2.0]), tg.compile(run)
    before = [compiled(x).tolist() for _ in range(4)]
    with monkeypatch.context() as patch:
        patch.setattr(module, name, lambda x: x + 100)
        assert compiled(x).tolist() == run(x).tolist() != before[0]
    assert compiled(x).tolist() == before[0] and compiled.plans()[0].replays >= 3


def test_a_global_that_is_new_is_noticed(sides):
    def made():
        globals().pop("NEW", None)

        def run(x):
            try:
                return x * NEW
            except NameError:
                return x

        def arguments(call):
            if call == 4:
                globals()["NEW"] = 2
            return [tg.tensor(numbers(3, seed=call))]

        return run, list, arguments

    sides.run(made, 7)
