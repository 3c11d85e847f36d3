"""Small calls by the gRPC lane: how often its loop is woken for them."""

from telegrad import rpc
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing.cluster import in_process_cluster

CALLS = 100


def test_frames_leave_without_the_loop(monkeypatch):
    woken = []
    with in_process_cluster("a", "b", make_lane=GrpcLane) as (a, _), a.use():
        for _ in range(10):
            rpc.rpc_sync("b", abs, (-1,))
        loop = a.peers.find("b").dialed._loop
        wake = loop.call_soon_threadsafe

        def count(*args, **kwargs):
            woken.append(args)
            return wake(*args, **kwargs)

        monkeypatch.setattr(loop, "call_soon_threadsafe", count)
        for _ in range(CALLS):
            rpc.rpc_sync("b", abs, (-1,))
        monkeypatch.undo()
    assert len(woken) < CALLS / 2  # two a call when each frame was handed over
