"""Bulk sockets whose connection ends while a thread reads or writes, in a moment that ``LargePipe`` cannot choose."""

import os
import socket
import threading
import weakref
from types import SimpleNamespace

import pytest
from telegrad.rpc.lanes.large import reader, starter
from telegrad.rpc.lanes.large.reader import BulkReader
from telegrad.rpc.lanes.large.transfer import UNIT_HEAD as UNIT
from telegrad.rpc.lanes.large.transfer import Kind, Offer
from telegrad.rpc.lanes.large.writer import BulkWriter


class LatePoll:
    """Poll object whose second user is late."""

    def __init__(self, poll):
        self._poll = poll
        self._calls = 0
        self.called, self.goes_on = threading.Event(), threading.Event()

    def poll(self, *milliseconds):
        self._calls += 1
        if self._calls == 2:
            self.called.set()
            assert self.goes_on.wait(20)
        return self._poll.poll(*milliseconds)


def test_a_thread_that_reads_ends_although_another_socket_gets_its_sockets_number(loop, until, monkeypatch):
    monkeypatch.setattr(reader, "LINGER_SECONDS", 0.05)
    (near, far), (one, two), errors = socket.socketpair(), socket.socketpair(), []
    far.setblocking(False)

    async def read():
        return BulkReader(far, loop.loop, None, None, None, errors.append)

    async def close():
        reading.close()
        far.close()

    reading = loop.run(read())
    late = reading._poll = LatePoll(reading._poll)
    near.send(UNIT.pack(Kind.BEGIN, 100))
    assert late.called.wait(20)
    number = far.fileno()
    loop.run(close())
    os.dup2(one.fileno(), number)
    late.goes_on.set()
    until(lambda: errors)
    os.close(number)
    for each in (near, one, two):
        each.close()


class NoThread:
    """Thread that the system does not start, as under a limit of memory."""

    def __init__(self, **_):
        pass

    def start(self):
        raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("comes", [False, True])
def test_a_missing_thread_is_told_once_and_ends_the_connection_after_a_while(loop, until, monkeypatch, caplog, comes):
    monkeypatch.setattr(reader, "READER_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(reader, "GIVE_UP_SECONDS", 20.0 if comes else 0.05)
    monkeypatch.setattr(starter, "threading", SimpleNamespace(Thread=NoThread))
    (near, far), errors = socket.socketpair(), []
    far.setblocking(False)

    async def read():
        return BulkReader(far, loop.loop, None, None, None, errors.append)

    async def close():
        reading.close()
        far.close()

    reading = loop.run(read())
    near.close()
    if comes:
        until(lambda: caplog.messages)
        monkeypatch.setattr(starter, "threading", threading)
    until(lambda: errors)
    assert errors == [None] if comes else isinstance(errors[0], MemoryError)
    assert [message for message in caplog.messages if "no thread can be started to read" in message] == caplog.messages
    assert len(caplog.messages) == 1
    loop.run(close())


class Closing:
    """Socket whose connection ends while it sends."""

    writer = None

    def sendmsg(self, parts, *rest):
        self.writer.close()
        return sum(map(len, parts))


def test_a_thread_that_writes_an_offer_outlives_the_end_of_the_connection(loop):
    target, broken = Closing(), []
    target.writer = BulkWriter(target, loop.loop, broken.append)
    assert not target.writer.send(Offer(1, 0), waits=True)
    assert not broken


def test_nothing_is_kept_that_is_sent_while_the_connection_ends(loop):
    class Late(Offer):
        """Offer that comes when it was seen that the connection is open, and just before its end."""

        def copy(self):
            super().copy()
            writer.close()

    writer, late = BulkWriter(Closing(), loop.loop, None), Late(1, 0)
    kept = weakref.ref(late)
    assert not writer.send(late, waits=False)
    del late
    assert kept() is None
