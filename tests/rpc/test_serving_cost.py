"""Guard of what the callee does for a small call, from the bytes of its frame to those of its answer: calls, not seconds.

Without socket and pool, whose costs depend on what else runs; ``test_small_calls.py`` counts the caller's part with them.
"""

import itertools
import struct

import pytest
import telegrad as tg
from helpers.remote import same
from telegrad import rpc
from telegrad.rpc.wire.header import FrameKind
from telegrad.testing import count
from telegrad.testing.cluster import cluster

CALL_ID = slice(8, 16)  # in the header of a request


def nothing():
    pass


@pytest.mark.parametrize(
    ("function", "args", "python_calls", "c_calls"),
    [(nothing, (), 37, 33), (same, (tg.ones(256),), 48, 52)],  # 35 and 31, 46 and 50 were counted
    ids=["no-op", "1 KiB echo"],
)
def test_a_small_request_is_served_with_few_calls(monkeypatch, function, args, python_calls, c_calls):
    with cluster(["a", "b"]) as (_, b):
        arrived, answers, tasks = [], [], []
        received = b.sessions.received
        monkeypatch.setattr(b.sessions, "received", lambda *each: (arrived.append(each), received(*each)))
        rpc.rpc_sync("b", function, args)
        session, frame = next((at, bytes(frame)) for at, frame, _ in arrived if frame[0] == FrameKind.REQUEST)
        monkeypatch.undo()
        monkeypatch.setattr(type(session), "send", lambda *each: not answers.append(None))
        monkeypatch.setattr(b.threads.functions, "submit", tasks.append)
        numbers = itertools.count(1 << 40)

        def step():
            request = bytearray(frame)
            request[CALL_ID] = struct.pack("<Q", next(numbers))
            received(session, request, True)
            tasks.pop()()

        counts = count(step)
        monkeypatch.undo()
        assert len(answers) > 100 and not b.server.serving
        assert sum(counts.python_calls.values()) <= python_calls, counts.python_calls
        assert sum(counts.c_calls.values()) <= c_calls, counts.c_calls
