"""Errors of remote functions that nothing looks at: the caller logs each once."""

import asyncio
import logging
import threading

import pytest
from helpers.remote import Shelf
from telegrad import rpc
from telegrad.base.errors import LinkCutError, RpcCancelledError, RpcError, RpcTimeoutError, WorkerLostError
from telegrad.futures import wait_all
from telegrad.testing.cluster import cluster


def boom():
    raise ValueError("boom")


@pytest.fixture
def told(caplog):
    """Return a function that returns what was logged of errors that nothing has looked at."""
    caplog.set_level(logging.WARNING, "telegrad.rpc")
    return lambda: [record.getMessage() for record in caplog.records if "never looked at" in record.getMessage()]


@pytest.fixture
def failed(until):
    """Return a function that returns the future of a call that has failed, and whose error nothing has looked at."""

    def call():
        future = rpc.rpc_async("worker1", boom)
        until(future.done)
        return future

    return call


def test_the_error_of_a_dropped_future_is_told_once(told, failed, until):
    with cluster(2):
        future = failed()
        assert told() == []
        del future
        until(told)
        (text,) = told()
        assert text.startswith("worker 'worker0' never looked at the error of ") and "boom" in text
        assert "worker1" in text and 'raise ValueError("boom")' in text
    assert len(told()) == 1, "not again when the agent closes"


def test_a_call_whose_future_is_dropped_at_once_is_told_when_it_fails(told, failed, until):
    with cluster(2):
        rpc.rpc_async("worker1", boom)
        until(told)


def test_errors_that_were_looked_at_are_not_told(told, failed):
    def looked(done):
        assert isinstance(done.exception(), ValueError)

    async def awaited():
        await rpc.rpc_async("worker1", boom)

    with cluster(2):
        for look in (
            lambda future: future.wait(),
            lambda future: future.value(),
            lambda future: future.then(lambda done: done.value()).wait(),
            lambda future: wait_all([future]),
        ):
            with pytest.raises(ValueError, match="boom"):
                look(failed())
        assert failed().exception() is not None
        failed().then(looked).wait()
        with pytest.raises(ValueError, match="boom"):
            asyncio.run(awaited())
        with pytest.raises(ValueError, match="boom"):
            rpc.rpc_sync("worker1", boom)
    assert told() == []


def test_an_error_that_a_callback_passes_on_is_told_of_its_future(told, failed, until):
    with cluster(2):
        future = failed().then(lambda done: done.value())
        assert told() == []
        del future
        until(told)
        assert len(told()) == 1


def test_what_is_kept_is_told_when_the_agent_closes(told, failed):
    with cluster(2):
        future = failed()
        assert told() == []
    (text,) = told()
    assert "boom" in text
    assert isinstance(future.exception(), ValueError)
    del future
    assert len(told()) == 1


@pytest.fixture
def under_way():
    """Return a function that begins a call whose function waits until the test ends."""
    Shelf.kept["over"] = over = threading.Event()
    yield lambda **options: rpc.rpc_async("worker1", wait_until_over, **options)
    over.set()


def wait_until_over():
    Shelf.kept["over"].wait(20)


def test_a_time_out_that_nothing_looks_at_is_told_once_in_a_line(told, under_way, until):
    with cluster(2):
        under_way(timeout=0.02)
        until(told)
        with pytest.raises(RpcTimeoutError):
            under_way(timeout=0.02).wait()
    (text,) = told()
    assert "got no answer within 0.02 s" in text and len(text.splitlines()) == 2


def test_a_broken_link_is_told_and_a_loss_and_a_cancel_are_not(told, under_way, until):
    errors = {WorkerLostError: "lost", RpcCancelledError: "cancelled", LinkCutError: "cut"}
    with cluster(2) as (caller, _):
        for kind, reason in errors.items():
            future = under_way()
            caller.caller.fail_where(lambda call: True, lambda call, kind=kind, reason=reason: kind(reason))
            assert future.done()
            del future
        until(told)
    (text,) = told()
    assert "LinkCutError: cut" in text


def wait_and_raise():
    Shelf.kept["runs"].set()
    assert Shelf.kept["over"].wait(20)
    raise ValueError("seen by no caller")


def test_the_callee_tells_an_error_whose_caller_is_gone(caplog, until):
    caplog.set_level(logging.WARNING, "telegrad.rpc")
    Shelf.kept.update(runs=threading.Event(), over=threading.Event())
    with cluster(2) as (caller, callee):
        future = rpc.rpc_async("worker1", wait_and_raise)
        assert Shelf.kept["runs"].wait(20)
        caller.close()
        until(lambda: callee.peers.at(0).gone)
        Shelf.kept["over"].set()
        until(lambda: "seen by no caller" in caplog.text)
    assert "wait_and_raise, called by worker 'worker0', raised:" in caplog.text
    assert caplog.text.count("ValueError: seen by no caller") == 1
    assert isinstance(future.exception(), RpcError)
