"""Exceptions of the callee: the caller gets their own type, their message, and the remote traceback as the cause."""

import copy
import errno
import logging
import pickle
import sys
import threading
import traceback

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import (
    RemoteError,
    RpcTimeoutError,
    SerializationError,
    UnknownWorkerError,
    WorkerLostError,
    as_runtime_error,
    original_error,
)
from telegrad.core.futures import Future, copy_error
from telegrad.rpc.calls.codec import Codec
from telegrad.rpc.functions import calling
from telegrad.rpc.wire.failures import RemoteTraceback
from telegrad.rpc.wire.messages import NO_ATTACHMENTS, Incoming


class Custom(Exception):
    pass


class TwoArguments(Exception):
    """Its constructor does not take what ``args`` holds."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


class KeywordOnly(Exception):
    def __init__(self, *, code):
        super().__init__(code)
        self.code = code


class Unpicklable(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class UnpicklableArgument(Exception):
    def __str__(self):
        return "holds a lock"


class BadText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class BadReduce(Exception):
    def __reduce__(self):
        raise RuntimeError("no pickle")


class ExplodesWhenUnpickled(Exception):
    def __reduce__(self):
        return explode, ()


class Base(BaseException):
    pass


def explode():
    raise ValueError("unpickled")


def throw(error):
    raise error


def make_and_throw(kind, *args, **kwargs):
    raise kind(*args, **kwargs)


def chained():
    try:
        int("x")
    except ValueError as error:
        raise Custom("outer") from error


def throw_group():
    raise ExceptionGroup("several", [ValueError("one"), Custom("two")])  # noqa: F821


def callback_that_fails():
    future = Future()
    future.set_result(1)
    return future.then(lambda done: {}["k"]).wait()


def local_class():
    class Local(Exception):
        pass

    raise Local("from inside a function")


def raised(function, *args, **kwargs):
    """Return what a call raises, however it is made."""
    with pytest.raises(BaseException) as first:
        rpc.rpc_sync("b", function, args, kwargs)
    future = rpc.rpc_async("b", function, args, kwargs)
    with pytest.raises(type(first.value)):
        future.wait()
    assert type(future.exception()) is type(first.value)
    with rpc.remote("b", function, args, kwargs) as reference, pytest.raises(type(first.value)) as third:
        reference.to_here()
    assert str(third.value) == str(first.value)
    return first.value


@pytest.mark.parametrize(
    "error",
    [
        ValueError("v"),
        KeyError("k"),
        OSError(errno.ENOENT, "no such file", "name"),
        UnicodeDecodeError("utf8", b"x", 0, 1, "reason"),
        StopIteration(3),
        Custom("c", 2),
        Custom(),
        ImportError("i", name="module"),
        RpcTimeoutError("late"),
        UnknownWorkerError("who"),
        WorkerLostError("gone", "z"),
        SerializationError("s"),
        AssertionError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_keeps_its_type_and_message(workers, error):
    received = raised(throw, error)
    assert type(received) is type(error)
    assert str(received) == str(error)
    assert received.args == error.args
    assert received.__dict__ == error.__dict__
    cause = received.__cause__
    assert isinstance(cause, RemoteTraceback)
    assert cause.worker == "b"
    assert "on worker 'b'" in str(cause)
    assert "in throw" in str(cause)


def test_what_the_user_sees_names_worker_and_line(workers):
    received = raised(throw, Custom("c"))
    text = "".join(traceback.format_exception(received))
    assert "on worker 'b':\nTraceback (most recent call last):" in text
    assert "tests/rpc/test_errors.py" in text
    assert "server_call.py" not in text  # how the callee got to the function says nothing to its author
    assert "Custom: c" in text.splitlines()[-1]


def test_the_failure_of_a_reference_names_worker_and_line_once(workers):
    reference = rpc.remote("b", throw, (Custom("c"),))
    for _ in range(2):
        with pytest.raises(Custom) as received:
            reference.to_here()
        text = str(received.value.__cause__)
        assert text.count("on worker 'b'") == text.count("Traceback (most") == 1
        assert "in throw" in text and "rref/requests.py" not in text


ways_to_call = pytest.mark.parametrize(
    "call",
    [
        lambda: rpc.rpc_sync("b", len),
        lambda: rpc.remote("b", len).to_here(),
        lambda: next(rpc.stream("b", len)),
    ],
    ids=["rpc_sync", "remote", "stream"],
)


@ways_to_call
def test_a_function_that_the_callee_cannot_find_is_told_once(workers, monkeypatch, call):
    monkeypatch.setattr(calling, "reference", lambda function, same_main: "no_such_module_xyz:f")
    with pytest.raises(SerializationError) as received:
        call()
    text = "".join(traceback.format_exception(received.value))
    assert "worker 'b' cannot find 'f' in module 'no_such_module_xyz' (No module named 'no_such_module_xyz')" in text
    assert text.count("worker 'b'") == text.count("Traceback (most recent call last)") == 1


@ways_to_call
def test_a_module_that_the_callee_cannot_import_shows_its_line(workers, monkeypatch, tmp_path, call):
    (tmp_path / "imports_what_is_not.py").write_text("import no_such_module_xyz")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(calling, "reference", lambda function, same_main: "imports_what_is_not:f")
    with pytest.raises(
        SerializationError,
        match=r"worker 'b' cannot find 'f' in module 'imports_what_is_not' .*; install no_such_module_xyz there if",
    ) as received:
        call()
    text = str(received.value.__cause__)
    assert "on worker 'b'" in text and text.count("Traceback (most recent call last)") == 1
    assert 'imports_what_is_not.py", line 1' in text and "function_names.py" not in text and "importlib" not in text


def test_a_class_that_the_receiver_cannot_find_is_named():
    message = Incoming()
    message.flags, message.attached, message.extras = 0, NO_ATTACHMENTS, {}
    message.pickled = b"cno_such_module_xyz\nC\n."
    with pytest.raises(
        SerializationError,
        match=r"worker 'b' cannot find what a message names: No mod.*_xyz'; install no_such_module_xyz there if",
    ) as received:
        Codec(1 << 20, "b").open(message)
    assert received.value.__cause__ is None and received.value.__suppress_context__


def test_what_cannot_be_pickled_is_tried_twice_and_told_once(workers):
    with pytest.raises(SerializationError) as received:
        rpc.rpc_sync("b", len, (threading.Lock(),))
    assert received.value.__cause__.__context__ is None


@pytest.mark.parametrize(
    ("kind", "args", "kwargs", "text"),
    [(TwoArguments, (3, "text"), {}, "3: text"), (KeywordOnly, (), {"code": 3}, "3")],
)
def test_a_constructor_with_its_own_arguments_is_no_hindrance(workers, kind, args, kwargs, text):
    received = raised(make_and_throw, kind, *args, **kwargs)
    assert type(received) is kind
    assert received.code == 3
    assert str(received) == text


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (make_and_throw, (Unpicklable, "u"), r"Unpicklable on worker 'b': u"),
        (lambda: throw(UnpicklableArgument(threading.Lock())), (), "UnpicklableArgument on worker 'b'"),
        (make_and_throw, (SystemExit, 3), "SystemExit on worker 'b': 3"),
        (sys.exit, (4,), "SystemExit on worker 'b': 4"),
        (make_and_throw, (KeyboardInterrupt,), "KeyboardInterrupt on worker 'b'"),
        (make_and_throw, (GeneratorExit,), "GeneratorExit on worker 'b'"),
        (make_and_throw, (Base, "base"), "Base on worker 'b': base"),
    ],
)
def test_what_cannot_be_rebuilt_is_a_remote_error_that_says_the_same(workers, function, args, words):
    received = raised(function, *args)
    assert type(received) is RemoteError
    with pytest.raises(RemoteError, match=words):
        raise received
    assert isinstance(received.__cause__, RemoteTraceback)
    assert rpc.rpc_sync("b", len, ("ab",)) == 2  # it goes on


@pytest.mark.parametrize("kind", [BadReduce, ExplodesWhenUnpickled, BadText])
def test_an_exception_whose_own_methods_fail(workers, kind):
    with pytest.raises(kind) as received:
        rpc.rpc_sync("b", make_and_throw, (kind, "text"))
    assert received.value.args == ("text",)
    assert isinstance(received.value.__cause__, RemoteTraceback)


def test_a_chain_of_exceptions_is_in_the_traceback(workers):
    received = raised(chained)
    assert type(received) is Custom
    text = str(received.__cause__)
    assert "invalid literal for int()" in text
    assert "direct cause" in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with 3.11")
def test_an_exception_group(workers):
    received = raised(throw_group)
    assert type(received) is ExceptionGroup  # noqa: F821
    assert [str(error) for error in received.exceptions] == ["one", "two"]
    assert type(received.exceptions[1]) is Custom


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes came with 3.11")
def test_notes_travel(workers):
    error = Custom("c")
    error.add_note("a note")
    assert raised(throw, error).__notes__ == ["a note"]


def test_an_exception_of_a_local_class(workers):
    with pytest.raises(Exception, match="from inside a function") as received:
        rpc.rpc_sync("b", local_class)
    assert type(received.value).__name__ == "Local"
    assert isinstance(received.value.__cause__, RemoteTraceback)


def relay(route, error):
    if not route:
        raise error
    rpc.rpc_sync(route[0], relay, (route[1:], error))


def test_an_exception_from_far_tells_every_station(workers):
    with pytest.raises(Custom) as far:
        rpc.rpc_sync("b", relay, (["c", "a"], Custom("far")))
    text = "".join(traceback.format_exception(far.value))
    for worker in "abc":
        assert f"on worker {worker!r}:" in text


def test_an_error_at_oneself(workers):
    with pytest.raises(Custom) as own:
        rpc.rpc_sync("a", throw, (Custom("own"),))
    assert own.value.__cause__.worker == "a"


def test_a_future_raises_the_same_error_again(workers):
    future = rpc.rpc_async("b", throw, (Custom("again"),))
    for _ in range(3):
        with pytest.raises(Custom, match="again"):
            future.wait()
    assert type(future.exception()) is Custom
    assert type(future.then(lambda same: same.exception()).wait()) is Custom


@pytest.mark.parametrize("function", [throw])
def test_wait_all_over_calls(workers, function):
    gate = tg.futures.Future()
    Gate.future = gate
    futures = [rpc.rpc_async("c", pass_gate), rpc.rpc_async("b", function, (Custom("first"),))]
    with pytest.raises(Custom, match="first"):
        tg.futures.wait_all(futures)
    gate.set_result(None)
    futures[0].wait()


class Gate:
    future = None


def pass_gate():
    Gate.future.wait(30)


@pytest.mark.parametrize("how", ["call", "reference"])
def test_the_callee_can_log_it(workers, caplog, how, until):
    with caplog.at_level(logging.INFO, "telegrad.rpc"):
        if how == "call":
            raised(make_and_throw, ValueError, "bad weather")
        else:
            rpc.remote("b", make_and_throw, (ValueError, "bad weather"))
        until(lambda: any("bad weather" in record.getMessage() for record in caplog.records))
    (text, *_) = (record.getMessage() for record in caplog.records if "bad weather" in record.getMessage())
    assert "make_and_throw, called by worker 'a', raised:" in text and "raise kind(*args, **kwargs)" in text


# -- errors that are RuntimeErrors, too


@pytest.mark.parametrize(
    "error",
    [
        KeyError("k"),
        OSError(errno.ENOENT, "no such file", "name"),
        UnicodeDecodeError("utf8", b"x", 0, 1, "reason"),
        StopIteration(3),
        TwoArguments(1, "text"),
        KeywordOnly(code=3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_is_a_runtime_error_too(error):
    error.__cause__ = ValueError("why")
    both = as_runtime_error(error)
    for copied in (
        both,
        copy.copy(both),
        pickle.loads(pickle.dumps(as_runtime_error(KeyError("k")))),
        copy_error(both),
    ):
        assert isinstance(copied, RuntimeError)
    for each in (both, original_error(both)):
        assert isinstance(each, type(error)) and type(each).__qualname__ == type(error).__qualname__
        assert (str(each), repr(each), each.args) == (str(error), repr(error), error.args)
        assert each.__dict__ == error.__dict__ and each.__cause__ is error.__cause__
    assert type(original_error(both)) is type(error) and original_error(error) is error
    assert as_runtime_error(both) is both
    assert getattr(both, "filename", None) == getattr(error, "filename", None)


def test_a_plain_exception_becomes_a_plain_runtime_error():
    error = Exception("text", 3)
    error.__cause__ = ValueError("why")
    both = as_runtime_error(error)
    assert type(both) is RuntimeError and both.args == error.args and both.__cause__ is error.__cause__
    assert type(as_runtime_error(KeyError("k"))).__name__ == "KeyError"


def test_a_runtime_error_stays_as_it_is():
    error = WorkerLostError("gone", "b")
    assert as_runtime_error(error) is error


def test_an_error_of_a_callback_keeps_its_type_through_calls(workers):
    assert type(raised(callback_that_fails)) is KeyError
