"""Bulk sockets whose connection ends while a thread reads or writes, in a moment that ``LargeFrames`` cannot choose."""

import os
import socket
import threading
import weakref

from telegrad.rpc.lanes.large import reader
from telegrad.rpc.lanes.large.reader import BulkReader
from telegrad.rpc.lanes.large.transfer import HEAD as UNIT
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
