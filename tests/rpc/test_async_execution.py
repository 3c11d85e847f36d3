"""``async_execution``: a function answers when the future that it returned completes, and holds no thread meanwhile."""

import threading

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.core.futures import Future
from telegrad.rpc.extend import GrpcRpcBackendOptions


def add(first, second):
    return first + second


@rpc.functions.async_execution
def add_through(worker, first, second):
    return rpc.rpc_async(worker, add, (first, second)).then(lambda done: done.value() + 1)


@rpc.functions.async_execution
def already(value):
    future = Future()
    future.set_result(value)
    return future


@rpc.functions.async_execution
def no_future():
    return 3


@rpc.functions.async_execution
def raises():
    raise KeyError("at once")


@rpc.functions.async_execution
def fails_later():
    return rpc.rpc_async("c", int, ("x",)).then(lambda done: done.value())


@rpc.functions.async_execution
def unsendable():
    return already(threading.Lock())


class Held:
    futures = []  # noqa: RUF012


@rpc.functions.async_execution
def hold():
    Held.futures.append(Future())
    return Held.futures[-1]


class Server:
    def __init__(self, offset=0):
        self.offset = offset

    @rpc.functions.async_execution
    def method(self, value):
        return rpc.rpc_async("c", add, (value, self.offset))

    @staticmethod
    @rpc.functions.async_execution
    def static(value):
        return already(value)

    @rpc.functions.async_execution
    @staticmethod
    def static_below(value):
        return already(value)

    @classmethod
    @rpc.functions.async_execution
    def of_class(cls, value):
        return already((cls.__name__, value))

    @rpc.functions.async_execution
    @classmethod
    def of_class_below(cls, value):
        return already((cls.__name__, value))


@pytest.fixture(autouse=True)
def nothing_held():
    Held.futures.clear()
    yield
    Held.futures.clear()


def outcomes(function, *args):
    """Return the results of the three kinds of call."""
    with rpc.remote("b", function, args) as reference:
        return [rpc.rpc_sync("b", function, args), rpc.rpc_async("b", function, args).wait(), reference.to_here()]


@pytest.mark.parametrize(
    ("function", "args", "result"),
    [
        (add_through, ("c", 1, 2), 4),
        (add_through, ("b", 1, 2), 4),
        (already, (5,), 5),
        (Server.static, (1,), 1),
        (Server.static_below, (1,), 1),
        (Server.of_class, (1,), ("Server", 1)),
        (Server.of_class_below, (1,), ("Server", 1)),
        (Server(10).method, (1,), 11),
    ],
)
def test_the_caller_gets_the_future_s_value(workers, function, args, result):
    assert outcomes(function, *args) == [result] * 3


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("method", 12),
        ("static", 2),
        ("static_below", 2),
        ("of_class", ("Server", 2)),
        ("of_class_below", ("Server", 2)),
    ],
)
def test_through_a_reference(workers, name, result):
    with rpc.remote("b", Server, (10,)) as server:
        assert getattr(server.rpc_sync(), name)(2) == result
        assert getattr(server.rpc_async(), name)(2).wait() == result
        with getattr(server.remote(), name)(2) as reference:
            assert reference.to_here() == result


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (no_future, TypeError, "async_execution must return a Future; it returned int"),
        (raises, KeyError, "at once"),
        (fails_later, ValueError, "invalid literal"),
    ],
)
def test_what_goes_wrong_reaches_the_caller(workers, function, error, words):
    with pytest.raises(error, match=words):
        rpc.rpc_sync("b", function)
    with rpc.remote("b", function) as reference, pytest.raises(error, match=words):
        reference.to_here()


def test_a_value_that_cannot_be_sent(workers):
    with pytest.raises(TypeError, match="the result"):
        rpc.rpc_sync("b", unsendable)


def test_it_holds_no_thread(cluster, until):
    with cluster("a", "b", options=GrpcRpcBackendOptions(num_worker_threads=1)) as (a, b), a.use():
        futures = [rpc.rpc_async("b", hold) for _ in range(50)]
        until(lambda: len(Held.futures) == 50)
        assert rpc.rpc_sync("b", add, (1, 2)) == 3
        until(lambda: b.debug_info()["threads"]["blocked"] == 0)
        for number, future in enumerate(Held.futures):
            future.set_result(number)
        assert sorted(tg.futures.wait_all(futures)) == list(range(50))


def test_completing_it_twice_is_the_callee_s_error(workers, until):
    future = rpc.rpc_async("b", hold)
    until(lambda: Held.futures)
    Held.futures[0].set_result(1)
    with pytest.raises(RuntimeError, match="completes exactly once"):
        Held.futures[0].set_result(2)
    assert future.wait() == 1


def test_one_future_may_answer_many_calls(workers, until):
    shared = Future()
    Held.shared = shared
    futures = [rpc.rpc_async("bc"[number % 2], share) for number in range(10)]
    shared.set_result("all")
    assert tg.futures.wait_all(futures) == ["all"] * 10


@rpc.functions.async_execution
def share():
    return Held.shared
