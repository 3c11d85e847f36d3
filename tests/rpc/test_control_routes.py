"""Control messages leave where the peer reads, and never by a session that has ended."""

import gc

import pytest
from telegrad import rpc


def number():
    return 1


@pytest.fixture
def pair(cluster):
    with cluster("a", "b") as (a, b), a.use():
        rpc.rpc_sync("b", number)
        rpc.rpc_sync("b", number)  # the first may have left before the session was open
        yield a.peers.find("b"), b.peers.find("a"), b


def test_they_leave_by_the_session_of_the_latest_request(pair):
    near, far, _ = pair
    assert near.where_it_reads() is near.link.dialed
    assert far.where_it_reads() is far.link.accepted[0]


def test_a_request_that_was_in_hand_as_its_session_ended_does_not_bring_it_back(pair, until):
    """Else messages would go there, and be lost, until the next request."""
    near, far, b = pair
    ended, gone = near.link.dialed, far.link.accepted[0]
    ended.close()
    until(lambda: near.link.dialed is not ended and gone not in far.link.accepted)
    near.link.latest, far.link.latest = ended, gone
    assert near.where_it_reads() is None and far.where_it_reads() is None
    reference = rpc.remote("b", number)
    assert reference.to_here() == 1
    near.link.latest, far.link.latest = ended, gone
    del reference
    gc.collect()
    until(lambda: not any(b.debug_info()["references"].values()))


def test_nothing_leaves_by_the_former_session_when_the_peer_has_dialed_again(pair):
    """The peer has lost it, and this worker may not know for long."""
    _, far, _ = pair
    fresh = object()
    far.admitted(fresh)
    try:
        assert far.where_it_reads() is None
    finally:
        far.link.accepted.remove(fresh)
