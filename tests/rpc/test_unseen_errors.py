"""Errors of remote functions that nothing looks at: the caller logs each once."""

import asyncio
import logging

import pytest
from telegrad import rpc
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
