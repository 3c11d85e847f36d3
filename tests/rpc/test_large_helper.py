"""The thread that writes large frames for the main thread: one for many, and none when there is nothing to do."""

import threading
import time
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
from telegrad.rpc.lanes.ioloop import LoopThread
from telegrad.rpc.lanes.large import helper as module
from telegrad.rpc.lanes.large import starter
from telegrad.rpc.lanes.large.helper import HelperThread

SECONDS = 30


@pytest.fixture
def loop():
    thread = LoopThread("test-loop")
    yield thread.loop
    assert thread.stop(SECONDS)


def run(helper):
    """Have the helper run an action, and return the thread that ran it."""
    found, deadline = [], time.monotonic() + SECONDS
    helper.do(lambda: found.append(threading.current_thread()), lambda: found or time.monotonic() > deadline)
    assert found, "it did not run"
    return found[0]


def test_one_thread_runs_what_follows_soon_and_ends_with_its_owner(loop, monkeypatch):
    monkeypatch.setattr(module, "LINGER_SECONDS", SECONDS)
    helper = HelperThread(loop)
    first = run(helper)
    assert first is not threading.current_thread() and {run(helper) for _ in range(20)} == {first}
    helper.close()
    first.join(SECONDS)
    assert not first.is_alive()


def test_no_action_is_lost_while_the_thread_ends(loop, monkeypatch):
    monkeypatch.setattr(module, "LINGER_SECONDS", 1e-4)
    helper = HelperThread(loop)
    threads = [run(helper) for _ in range(300)]
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)


def test_a_thread_that_ends_does_not_end_the_next_one(loop, monkeypatch):
    monkeypatch.setattr(module, "LINGER_SECONDS", 1e-3)
    threads, found, started = [], [], threading.Event()

    class InTurn(threading.Thread):
        """Thread that begins when the one before has ended."""

        def start(self):
            threads.append(self)
            super().start()
            if len(threads) > 1:
                started.set()

        def run(self):
            if self is not threads[0]:
                threads[0].join(SECONDS)
            super().run()

    class Actions(SimpleQueue):
        """Queue to which the next action comes just after the first thread has found nothing in it."""

        def empty(self):
            result = super().empty()
            if not started.is_set():
                other.start()
                started.wait(SECONDS)
            return result

    helper = HelperThread(loop)
    helper._actions = Actions()
    other = threading.Thread(target=lambda: found.append(run(helper)))
    monkeypatch.setattr(starter, "threading", SimpleNamespace(Thread=InTurn))
    assert run(helper) is threads[0]
    threads[0].join(SECONDS)
    other.join(SECONDS)
    assert found == [threads[1]]


def test_an_action_that_fails_is_logged_and_the_next_one_runs(loop, caplog):
    helper, began = HelperThread(loop), []

    def fail():
        began.append(1)
        raise MemoryError("no room")

    helper.do(fail, lambda: False)  # it waits no longer than the action runs
    assert run(helper) is not threading.current_thread()
    assert "a large frame could not be written" in caplog.text and "no room" in caplog.text
    helper.close()


def test_a_thread_that_cannot_be_started_is_tried_again(loop, no_first_thread, caplog):
    helper = HelperThread(loop)
    assert run(helper) is not no_first_thread[0] and "it is tried again" in caplog.text
    helper.close()
