"""``within``: a time limit for a coroutine that also ends when it is cancelled at the last moment. Loops that are closed."""

import asyncio
import time
from contextlib import suppress

import grpc
import pytest
from grpc import ChannelConnectivity
from telegrad.rpc.lanes import socket_setup
from telegrad.rpc.lanes.grpc_channel import connect
from telegrad.rpc.security.handshake import SocketTokens
from telegrad.rpc.threads.ioloop import LoopThread, within

SECONDS = 30


async def cancelled_as(ended, coroutine):
    """Cancel a coroutine when ``ended`` is not empty, which one that it awaits fills as it ends; check that it ends, too."""
    task = asyncio.ensure_future(coroutine)
    while not ended:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_result_is_returned():
    assert await within(SECONDS, asyncio.sleep(0, "result")) == "result"


async def test_the_error_is_raised():
    async def fail():
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        await within(SECONDS, fail())


async def test_what_takes_longer_is_cancelled_and_has_ended():
    ended = []

    async def last():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(1)

    with pytest.raises(asyncio.TimeoutError):
        await within(0.001, last())
    assert ended


async def test_a_cancellation_that_comes_as_the_result_comes_is_not_lost():
    ended, dropped = [], []

    async def end():
        await asyncio.sleep(0)
        ended.append(1)
        return "result"

    await cancelled_as(ended, within(SECONDS, end(), dropped.append))
    assert dropped == ["result"]


async def test_a_socket_that_was_opened_as_its_connection_was_cancelled_is_closed(monkeypatch):
    opened = []

    class Opened:
        closed = False

        def close(self):
            self.closed = True

    async def open_at_once(*args):
        opened.append(Opened())
        return opened[0]

    monkeypatch.setattr(socket_setup, "_open", open_at_once)
    await cancelled_as(opened, socket_setup.open_socket(["tcp://127.0.0.1:1"], SocketTokens(b"", b"", b""), None, ""))
    assert opened[0].closed


async def test_a_dial_that_is_cancelled_as_the_peer_answers_ends():
    answered = []

    class Channel:
        """Channel that becomes ready at the first look."""

        def get_state(self, try_to_connect):
            answered.append(1)
            return ChannelConnectivity.READY

    await cancelled_as(answered, connect(Channel(), "127.0.0.1:1", None, "", SECONDS))


async def _given_up():
    """Begin an operation of gRPC that ends in half a second, whoever waits for it."""
    channel = grpc.aio.insecure_channel("127.0.0.1:1")
    state = channel.get_state().value[0]
    watching = channel._channel.watch_connectivity_state(state, time.time() + 0.5)
    await asyncio.wait([asyncio.ensure_future(watching)], timeout=0.05)
    return channel, state


async def _watched(channel, state):
    """Return the errors of a loop, until gRPC has ended another operation of the same length."""
    errors = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    other = grpc.aio.insecure_channel("127.0.0.1:1")
    with suppress(grpc.aio.UsageError, asyncio.TimeoutError):
        await other._channel.watch_connectivity_state(state, time.time() + 0.6)
    return errors


def test_what_grpc_still_has_for_a_closed_loop_does_not_disturb_the_next_loop():
    first, second = LoopThread("first"), LoopThread("second")
    channel, state = first.run(_given_up())
    first.stop()
    assert second.run(_watched(channel, state), 10) == []
    second.stop()
