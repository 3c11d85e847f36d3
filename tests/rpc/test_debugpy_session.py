"""Session of an IDE with a debugger that stands in for debugpy: its bytes, and their bounds."""

import socket
import threading

import pytest
from helpers.threads import until
from telegrad.base.errors import RpcError
from telegrad.rpc.debugging import debugpy_session
from telegrad.rpc.debugging.dap_messages import dap_message
from telegrad.rpc.debugging.debugpy_session import DebugpySession


@pytest.fixture
def session(monkeypatch):
    """A session, and the other end of its connection."""
    here, there = socket.socketpair()
    monkeypatch.setattr(debugpy_session, "_connected", lambda name: here)
    monkeypatch.setattr(debugpy_session, "LET_GO_SECONDS", 5.0)
    found = DebugpySession("w")
    with there:
        there.settimeout(20)
        yield found, there
        there.close()
        found.close()
        found.join()
        assert not [each for each in threading.enumerate() if each.name == "telegrad-debugpy"]


def test_bytes_that_are_sent_again_are_taken_once(session):
    session, debugger = session
    first, second = dap_message({"seq": 1}), dap_message({"seq": 2})
    session.write(0, first)
    session.write(0, first + second)
    data = b""
    while len(data) < len(first + second):
        data += debugger.recv(1000)
    assert data == first + second
    with pytest.raises(RpcError, match="were expected"):
        session.write(1000, second)


def test_output_is_given_in_whole_messages_until_it_is_known_to_have_arrived(session):
    session, debugger = session
    message = dap_message({"seq": 1, "text": "x" * 100})
    debugger.sendall(message[:50])
    debugger.sendall(message[50:] + message[:30])
    until(lambda: session.more_output() is None)
    assert session.output(0) == session.output(0) == (message, False)
    assert session.output(len(message)) == (b"", False)


def test_output_that_is_not_fetched_has_a_bound_and_does_not_keep_the_session_open(session, monkeypatch):
    monkeypatch.setattr(debugpy_session, "MOST_KEPT_OUTPUT", 1000)
    session, debugger = session
    debugger.setblocking(False)
    message = dap_message({"text": "x" * 500})
    with pytest.raises(BlockingIOError):
        for _ in range(100_000):
            debugger.sendall(message)
    assert len(session.output(0)[0]) < 200_000


def test_the_end_of_an_ide_ends_the_connection(session):
    session, debugger = session
    session.write(0, dap_message({"seq": 1, "type": "request", "command": "disconnect"}))
    data = b""
    while more := debugger.recv(1000):
        data += more
    assert b"disconnect" in data
