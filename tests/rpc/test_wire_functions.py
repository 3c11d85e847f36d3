"""Functions that travel: by reference where both workers have them, by value otherwise."""

import functools
import importlib
import inspect
import operator
import os
import pickle
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import same
from telegrad import rpc
from telegrad.base.errors import SerializationError
from telegrad.rpc.wire.function_names import main_module_name, main_script, reference, resolve

gate = types.SimpleNamespace(reached=threading.Event(), open=threading.Event())


class Adder:
    def __init__(self, amount):
        self.amount = amount

    def add(self, number):
        return self.amount + number

    @classmethod
    def kind(cls):
        return cls.__name__

    @staticmethod
    def double(number):
        return 2 * number

    def __call__(self, number):
        return number - self.amount


def apply(function, *args):
    return function(*args)


def test_functions_go_by_reference():
    assert reference(operator.add, False) == "_operator:add"
    assert reference(Adder, False) == f"{__name__}:Adder"
    assert reference(Adder.double, False) == f"{__name__}:Adder.double"
    assert reference(Adder.kind, False) == f"{__name__}:Adder.kind"
    assert resolve(f"{__name__}:Adder.kind", "b")() == "Adder"
    for by_value in (
        lambda: 1,
        Adder(1).add,
        Adder(1),
        functools.partial(same, 1),
        types.FunctionType(same.__code__, {}),
    ):
        assert reference(by_value, False) is None


def test_a_function_of_a_module_that_another_thread_imports_is_waited_for(tmp_path, monkeypatch):
    """Two first calls at a time may name one module."""
    half = "def early(): return late()\ngate.reached.set()\nassert gate.open.wait(20)\ndef late(): return 7\n"
    (tmp_path / "half_imported.py").write_text(f"from {__name__} import gate\n{half}")
    monkeypatch.syspath_prepend(tmp_path)
    import_module = importlib.import_module

    def open_and_import(name):
        gate.open.set()
        return import_module(name)

    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(import_module, "half_imported")
        assert gate.reached.wait(20)
        monkeypatch.setattr(importlib, "import_module", open_and_import)
        try:
            assert resolve("half_imported:late", "b")() == 7
        finally:
            gate.open.set()
        assert first.result(20).early() == 7
    del sys.modules["half_imported"]


def test_a_function_that_was_found_before_is_not_used_when_it_was_replaced(monkeypatch):
    def module(result):
        made = types.ModuleType("changing")
        made.f = lambda: result
        return made

    monkeypatch.setitem(sys.modules, "changing", module(1))
    assert resolve("changing:f", "b")() == resolve("changing:f", "b")() == 1
    sys.modules["changing"].f = lambda: 2
    assert resolve("changing:f", "b")() == 2
    sys.modules["changing"] = module(3)  # as after del sys.modules[name] and another import
    assert resolve("changing:f", "b")() == 3
    del sys.modules["changing"].f
    with pytest.raises(SerializationError, match="cannot find 'f'"):
        resolve("changing:f", "b")


STATE = {"get_default_dtype", "is_grad_enabled"}  # they read what is this worker's own


@pytest.mark.parametrize("space", [tg, tg.nn.functional, tg.Tensor], ids=["tg", "nn.functional", "Tensor"])
def test_the_package_s_own_functions_go_by_reference(space):
    functions = {name: getattr(space, name) for name in dir(space) if not name.startswith("_") and name not in STATE}
    for name, function in functions.items():
        if inspect.isroutine(function):
            assert reference(function, False), name
            assert pickle.loads(pickle.dumps(function)) is function


def test_the_canonical_example(workers):
    assert rpc.rpc_sync("b", tg.add, (tg.ones(2), 3)).tolist() == [4, 4]
    assert rpc.rpc_sync("b", tg.Tensor.add_, (tg.ones(2), 3)).tolist() == [4, 4]
    with rpc.remote("b", tg.mul, (tg.ones(2), 3)) as product:
        assert product.rpc_sync().add(1).tolist() == [4, 4]


def test_functions_of_main_go_by_reference_where_both_run_the_same_script(monkeypatch):
    main = types.ModuleType("__main__")
    exec("def f(): return 1\nclass C:\n  def g(self): pass", main.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert reference(main.f, True) == "__main__:f"
    assert reference(main.f, False) is None
    assert reference(main.C.g, True) == "__main__:C.g"
    main.f.__module__ = "__mp_main__"
    assert reference(main.f, True) == "__main__:f"
    assert resolve("__mp_main__:f", "b") is main.f
    assert main_script() == ""
    main.__file__ = "x.py"
    assert main_script().endswith("/x.py")
    main.__file__ = os.fsdecode(b"\xff.py")
    assert main_script().encode().endswith(rb"/\udcff.py")  # a message can carry it
    main.__spec__ = types.SimpleNamespace(name="package.__main__")
    assert main_module_name() == "package"
    assert resolve("package:f", "b") is main.f


@pytest.mark.parametrize(
    ("function", "args", "result"),
    [
        (operator.add, (1, 2), 3),
        (len, ([1, 2],), 2),
        (str.upper, ("a",), "A"),
        ("abc".upper, (), "ABC"),
        (np.add, (1, 2), 3),
        (np.linalg.norm, ([3.0, 4.0],), 5.0),
        (lambda number: number + 1, (1,), 2),
        (functools.partial(same, value=4), (), 4),
        (functools.partial(apply, lambda: 5), (), 5),
        (Adder(10).add, (1,), 11),
        (Adder.double, (4,), 8),
        (Adder.kind, (), "Adder"),
        (Adder(1), (4,), 3),
        (dict, (), {}),
    ],
)
def test_whatever_can_be_called_can_be_called_there(workers, function, args, result):
    assert rpc.rpc_sync("b", function, args) == result
    assert rpc.rpc_sync("b", apply, (function, *args)) == result


def test_closures_bring_their_variables(workers):
    amount, array = 3, np.arange(3)

    def add(number):
        return array + amount + number

    class Local:
        def __init__(self, number):
            self.number = number

        def get(self):
            return self.number + amount

    assert rpc.rpc_sync("b", add, (1,)).tolist() == [4, 5, 6]
    assert rpc.rpc_sync("b", Local(1).get) == 4
    assert rpc.rpc_sync("b", apply, (lambda: add(0).sum(),)) == 12


def test_a_reference_in_a_closure(workers):
    with tg.RRef(5) as own:
        assert rpc.rpc_sync("b", lambda: own.to_here() + 1) == 6


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module_xyz:f", "cannot find 'f' in module 'no_such_module_xyz'"),
        (f"{__name__}:gone", "cannot find 'gone'.*define it at module level"),
        (f"{__name__}:STATE", "is not callable on worker 'b'; it is a set there"),
    ],
)
def test_a_function_that_the_callee_has_not(name, words):
    with pytest.raises(SerializationError, match=words):
        resolve(name, "b")
