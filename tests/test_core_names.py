"""Whatever users can hand to a remote call has a name under which another process finds it."""

import pickle
from types import FunctionType

import pytest
import telegrad as tg

FUNCTIONS = [
    (f"{namespace.__name__}.{name}", getattr(namespace, name))
    for namespace in (tg, tg.nn.functional, tg.Tensor)
    for name in dir(namespace)
    if not name.startswith("_") and isinstance(getattr(namespace, name), FunctionType)
]


@pytest.mark.parametrize("function", [function for _, function in FUNCTIONS], ids=[name for name, _ in FUNCTIONS])
def test_a_function_pickles_by_name(function):
    assert pickle.loads(pickle.dumps(function)) is function
