"""Cancels that come between two steps of what they cancel, as from another thread."""

from collections import OrderedDict

import pytest
from telegrad import rpc
from telegrad.core.errors import RpcCancelledError

ran: list[object] = []


def note(value):
    ran.append(value)
    return value


class Intruded(dict):
    """Dictionary that calls ``intrude`` once, after the first entry was made."""

    def __init__(self, intrude):
        super().__init__()
        self._intrude = intrude

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self._once(key)

    def setdefault(self, key, value):
        found = super().setdefault(key, value)
        self._once(key)
        return found

    def _once(self, key):
        intrude, self._intrude = self._intrude, lambda key: None
        intrude(key)


@pytest.mark.parametrize("table", ["waiting", "serving"])
def test_a_cancel_while_its_call_is_accepted_leaves_nothing(workers, monkeypatch, table, until):
    b = workers[1]
    ran.clear()
    rpc.rpc_sync("b", note, ("before",))
    server = b.server
    monkeypatch.setattr(server, table, Intruded(lambda key: server.cancel(b.peers.find("a"), key[1])))
    future = rpc.rpc_async("b", note, ("cancelled",))
    until(lambda: server._cancelled and not server.waiting and not server.serving)
    future.cancel()
    with pytest.raises(RpcCancelledError):
        future.wait()
    assert rpc.rpc_sync("b", note, ("after",)) == "after" and ran == ["before", "after"]


class Emptied(OrderedDict):
    """Dictionary that another thread changes whenever this one looks at the beginning."""

    def __iter__(self):
        entries = super().__iter__()
        self[len(self), "of another thread"] = None
        return entries


def test_cancels_that_come_by_two_connections_forget_the_oldest_together(workers, monkeypatch):
    b = workers[1]
    peer = b.peers.find("a")
    monkeypatch.setattr(b.server, "_cancelled", Emptied())
    for number in range(5000):
        b.server.cancel(peer, 2**60 + number)
    assert len(b.server._cancelled) <= 4097
