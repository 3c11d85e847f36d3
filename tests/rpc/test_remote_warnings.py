"""Warnings of a called function: shown at the callee as ever, and issued again at the caller, before the call ends."""

import asyncio
import warnings

import pytest
from telegrad import rpc
from telegrad.testing import in_process_cluster


class MyWarning(UserWarning):
    pass


def warn(text, category=UserWarning):
    warnings.warn(text, category, stacklevel=1)
    return text


def warn_and_fail():
    warn("before the end")
    raise ValueError("failed")


async def warn_later():
    await asyncio.sleep(0)
    return warn("in a task")


def items():
    for number in range(3):
        warn(f"item {number}")
        yield number


@rpc.functions.async_execution
def warn_in_callback():
    return rpc.rpc_async("a", abs, (-1,)).then(lambda done: warn("in a callback"))


@pytest.fixture(autouse=True)
def workers():
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with in_process_cluster("a", "b") as (a, b), a.use():
            yield a, b


def heard(action, *args):
    """Return the warnings at the caller, among all of this process, and what came of the action."""
    with pytest.warns() as caught, in_process_cluster("a", "b") as (a, _), a.use():
        value = action(*args)
    return [each for each in caught if str(each.message).endswith("(on worker 'b')")], value


def test_a_warning_is_issued_at_the_caller_with_its_class_and_place():
    (found,), value = heard(rpc.rpc_sync, "b", warn, ("careful", MyWarning))
    assert value == "careful" and str(found.message) == "careful (on worker 'b')"
    assert found.category is MyWarning and found.filename == __file__


def test_one_of_a_function_that_raises_too():
    def call():
        with pytest.raises(ValueError, match="failed"):
            rpc.rpc_sync("b", warn_and_fail)

    (found,), _ = heard(call)
    assert "before the end" in str(found.message)


@pytest.mark.parametrize("function", [warn_later, warn_in_callback])
def test_tasks_and_callbacks_too(function):
    (found,), value = heard(lambda: rpc.rpc_async("b", function).wait())
    assert str(found.message) == f"{value} (on worker 'b')"


def test_those_of_a_stream_come_with_its_items():
    found, value = heard(lambda: list(rpc.stream("b", items)))
    assert value == [0, 1, 2] and len(found) == 3


def test_an_unknown_class_is_a_user_warning_and_there_are_not_too_many():
    def many():
        hidden = type("Hidden", (UserWarning,), {"__module__": "nowhere"})
        for number in range(200):
            warnings.warn(f"number {number}", hidden, stacklevel=1)

    found, _ = heard(rpc.rpc_sync, "b", many)
    assert len(found) == 100 and {each.category for each in found} == {UserWarning}


PROGRAM = """
import warnings
from telegrad import rpc
from telegrad.launcher import local_cluster

def careless():
    warnings.warn("careless")

with local_cluster(1) as cluster:
    warnings.simplefilter("error")
    try:
        rpc.rpc_sync("worker0", careless)
    except UserWarning as error:
        print("raised:", error)
    rpc.rpc_sync("worker0", abs, (1,))
"""


@pytest.mark.processes
def test_where_warnings_are_errors_the_call_raises_it(run_python):
    assert "raised: careless (on worker 'worker0')" in run_python("-c", PROGRAM)
