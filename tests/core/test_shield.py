"""Ctrl-C: it ends waits and user code at once, leaves no protected code in part, and none is lost."""

import asyncio
import os
import signal
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
from helpers.interrupts import function_of
from telegrad.core.futures import Future, free, interruptible, shield
from telegrad.core.futures.protection import is_protected, protects

SECONDS = 60
MODULE = sys.modules[type(shield).__module__]
MAIN = threading.main_thread().ident


@pytest.fixture(autouse=True)
def shielded():
    shield.install()
    yield
    shield.uninstall()
    assert not shield.noted


def ctrl_c():
    signal.pthread_kill(MAIN, signal.SIGINT)


def soon(thread, function, condition=lambda: True):
    """Run a function in another thread, when a condition holds."""

    def run():
        while not condition():
            time.sleep(0.001)
        function()

    thread(run)


def library(source, module="telegrad.rpc.some", **names):
    """Return ``call``, which is defined by source code, as if it stood in a module of this package."""
    names["__name__"] = module
    exec(source, names)
    return names["call"]


in_protected_code = library("def call(function, *args): return function(*args)")


@pytest.fixture
def slow(monkeypatch):
    """A noted signal is sent again only after a while."""
    monkeypatch.setattr(MODULE, "PAUSES", (0.3, 0.3))


def note():
    in_protected_code(signal.raise_signal, signal.SIGINT)


@pytest.mark.parametrize(
    ("module", "protected"),
    [
        ("telegrad.rpc.flow.flow", True),
        ("telegrad.rref", True),
        ("telegrad.core.futures.future", True),
        ("telegrad.rpc.rendezvous.tcp", False),
        ("telegrad.core.tensor", None),
        ("telegrad.rpcs", None),
        ("asyncio.events", None),
        ("namedtuple_Amount", None),
        ("numpy.linalg", None),
        ("__main__", False),
        ("rpc.users", False),
        ("", False),
    ],
)
def test_code_is_protected_by_its_package(module, protected):
    assert library("def call(f, g): return f(g(0))", module)(protects, sys._getframe) is protected


@pytest.mark.parametrize("module", ["json", "telegrad.nn"])
def test_code_that_is_neither_is_as_protected_as_its_caller(module):
    carrying = library("def call(f, g): return f(g(0))", module)
    assert in_protected_code(carrying, is_protected, sys._getframe)
    assert not in_protected_code(lambda: carrying(is_protected, sys._getframe))
    assert not in_protected_code(interruptible, carrying, is_protected, sys._getframe)


def test_values_of_users_are_freed_in_open_code():
    asked = []

    class Value:
        def __del__(self):
            frame = sys._getframe(1)
            asked.append(protects(frame))

    in_protected_code(free, [Value()])
    assert asked == [False]


def test_ctrl_c_interrupts_user_code_at_once():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_interrupts_a_callback_of_protected_code():
    def callback():
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it goes on")

    with pytest.raises(KeyboardInterrupt):
        in_protected_code(callback)


TWO_THINGS = """
def call(signal, number, done):
    signal(number)
    done.append("one")
    done.append("two")
"""


def test_protected_code_comes_to_its_end_and_the_code_after_it_is_interrupted():
    done = []
    with pytest.raises(KeyboardInterrupt):
        library(TWO_THINGS)(signal.raise_signal, signal.SIGINT, done)
        assert done == ["one", "two"]
        time.sleep(SECONDS)
    assert done == ["one", "two"]


def test_a_wait_that_begins_after_a_noted_ctrl_c_raises_it(slow):
    with pytest.raises(KeyboardInterrupt):
        note()
        assert shield.noted
        Future().wait(SECONDS)


@pytest.mark.parametrize(
    "wait",
    [lambda: Future().wait(SECONDS), lambda: interruptible(time.sleep, SECONDS)],
    ids=["future", "sleep"],
)
def test_ctrl_c_ends_a_wait_in_protected_code(wait, thread):
    soon(thread, ctrl_c, lambda: function_of(MAIN) in ("sleep", "interruptible"))
    with pytest.raises(KeyboardInterrupt):
        in_protected_code(wait)


def test_another_ctrl_c_interrupts_protected_code_that_hangs(thread, monkeypatch, slow):
    monkeypatch.setattr(MODULE, "PATIENCE", 0.01)

    def press():
        ctrl_c()
        while not shield.noted:
            time.sleep(0.001)
        time.sleep(0.02)
        ctrl_c()

    soon(thread, press, lambda: function_of(MAIN) == "call")
    with pytest.raises(KeyboardInterrupt):
        in_protected_code(time.sleep, SECONDS)


class Dropped:
    def __init__(self, seen):
        self.seen = seen

    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        self.seen.append("end")


def ended(seen):
    signal.raise_signal(signal.SIGINT)
    seen.append("ended")


def test_a_finalizer_comes_to_its_end():
    """Errors raised there would be printed, and lost."""
    seen = []
    with pytest.raises(KeyboardInterrupt):
        Dropped(seen)
        assert seen == ["end"]
        time.sleep(SECONDS)
    with pytest.raises(KeyboardInterrupt):
        weakref.finalize(Future(), ended, seen)
        assert seen == ["end", "ended"]
        time.sleep(SECONDS)


def test_only_pythons_own_handler_is_replaced_and_by_the_main_thread(thread):
    shield.uninstall()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    thread(shield.install).join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    own = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        shield.install()
        assert signal.getsignal(signal.SIGINT) is not shield
        shield.uninstall()
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, own)


def test_in_a_notebook_it_is_installed_before_each_cell(monkeypatch):
    shell = SimpleNamespace(events=Events())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    for _ in range(2):
        shield.install()
    (before_cell,) = shell.events.callbacks["pre_run_cell"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as its kernel does
    before_cell(None)
    assert signal.getsignal(signal.SIGINT) is shield
    shield.uninstall()
    assert shell.events.callbacks == {"pre_run_cell": []} and signal.getsignal(signal.SIGINT) is not shield


class Events:
    """IPython's: a function is registered once."""

    def __init__(self):
        self.callbacks = {"pre_run_cell": []}

    def register(self, event, function):
        if function not in self.callbacks[event]:
            self.callbacks[event].append(function)

    def unregister(self, event, function):
        self.callbacks[event].remove(function)


def test_a_noted_ctrl_c_is_dropped_if_the_user_sets_a_handler(until, slow):
    note()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        until(lambda: not shield.noted)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_asyncio_run_cancels_its_main_task_as_with_pythons_handler():
    seen = []

    async def main():
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(SECONDS)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert seen == (["cancelled"] if sys.version_info >= (3, 11) else [])


def test_a_forked_child_forgets_what_was_noted(monkeypatch):
    monkeypatch.setattr(shield, "noted", 1.0)
    if not (pid := os.fork()):
        os._exit(bool(shield.noted))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
