"""Packages of ``core`` are imported under their short names too, and are the same modules."""

import importlib
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest
import telegrad as tg
from telegrad.base.import_aliases import ImportAliases, KeepsFunctions

ROOT = Path(__file__).resolve().parents[2]

NAMES = [
    "autograd",
    "errors",
    "futures",
    "linalg",
    "profiler",
    "sparse",
    "autograd.functional",
    "autograd.graph",
]


@pytest.mark.parametrize("name", NAMES)
def test_an_alias_is_the_module_itself(name):
    module = importlib.import_module(f"telegrad.{name}")
    real = "telegrad.base.errors" if name == "errors" else f"telegrad.core.{name}"
    assert module is importlib.import_module(real)
    assert module.__spec__.name == module.__name__
    assert module.__name__ == real
    assert importlib.reload(importlib.import_module("telegrad.core.signal")) is tg.signal


def test_a_type_checker_finds_each_alias_by_a_stub():
    finder = next(each for each in sys.meta_path if isinstance(each, ImportAliases) and each._prefix == "telegrad.")
    for name, place in finder._places.items():
        stub = ROOT / f"{name.replace('.', '/')}.pyi"
        dots = "." * (1 + name.count("."))
        assert stub.read_text() == f"from {dots}{place} import *\n", stub


def test_the_forms_of_import(run_python):
    program = """
from telegrad.autograd import Function, grad
from telegrad.autograd.functional import jacobian
from telegrad.autograd.profiler import record_function
import telegrad.futures, telegrad.autograd.graph
import telegrad as tg
assert tg.autograd.functional.jacobian is jacobian and tg.Function is Function
assert telegrad.futures.Future is tg.core.futures.Future and tg.profiler.record_function is record_function
assert tg.autograd.profiler.profile is tg.profiler.profile
"""
    run_python("-c", program)


def test_what_is_not_there():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'telegrad\.autograd\.nothing'"):
        importlib.import_module("telegrad.autograd.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        _ = tg.autograd.nothing


def test_a_module_that_keeps_its_functions_can_be_pickled(monkeypatch):
    """A lambda that another worker gets by value has the modules that it uses."""
    module = ModuleType("kept")
    monkeypatch.setitem(sys.modules, "kept", module)
    module.__class__ = KeepsFunctions
    assert pickle.loads(pickle.dumps(module)) is module
