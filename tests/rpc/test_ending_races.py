"""Sessions and generators that begin just as an agent closes or a worker is lost: they end all the same."""

import pytest
from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcError
from telegrad.rpc.extend import GrpcRpcBackendOptions, InProcessLane, InProcessNetwork, Producers, current_agent
from telegrad.rpc.links.peer import Peer
from telegrad.testing import in_process_cluster

SECONDS = 30
OPTIONS = GrpcRpcBackendOptions(rpc_timeout=SECONDS)


@pytest.fixture
def before_admission(monkeypatch):
    """``before_admission(action)`` calls ``action(peer)``, once, when a worker that dials is about to be admitted."""
    actions, admitted = [], Peer.admitted

    def admit(peer, session):
        while actions:
            actions.pop()(peer)
        return admitted(peer, session)

    monkeypatch.setattr(Peer, "admitted", admit)
    return actions.append


def test_a_worker_that_is_lost_as_it_dials_is_told(cluster, before_admission, until):
    with cluster("a", "b", options=OPTIONS) as (a, b), a.use():
        before_admission(lambda peer: b.losses._remove(peer, "its test says so"))
        with pytest.raises(RpcError):
            rpc.rpc_sync("b", abs, (-1,))
        until(lambda: "its test says so" in a.closed and not b.peers.at(0).link.accepted)


def test_a_session_that_comes_as_the_agent_closes_is_closed(before_admission, until):
    with in_process_cluster("a", "b", options=OPTIONS) as (a, b), a.use():
        before_admission(lambda peer: b.close("its test ends it"))
        with pytest.raises(RpcError):
            rpc.rpc_sync("b", abs, (-1,))
        until(lambda: not a.peers.at(1).sessions())


def test_a_session_that_is_dialed_as_the_agent_closes_is_closed(until):
    network, dialed = InProcessNetwork(), []

    class Late(InProcessLane):
        """Lane whose agent closes while it dials."""

        def dial(self, listener, peer, address):
            session = super().dial(listener, peer, address)
            if peer.name == "b":
                dialed.append(session)
                a.close("its test ends it")
            return session

    with in_process_cluster("a", "b", options=OPTIONS, make_lane=lambda: Late(network)) as (a, b), a.use():
        with pytest.raises(AgentClosedError):
            rpc.rpc_sync("b", abs, (-1,))
        assert dialed
        until(lambda: not b.peers.at(0).sessions())


began = []


def count():
    began.append(1)
    yield from range(10)


def close_and_count():
    current_agent().close("its test ends it")
    return count()


def test_a_generator_that_is_made_as_its_agent_closes_does_not_begin(cluster, until):
    began.clear()
    with cluster("a", "b", options=OPTIONS) as (a, b), a.use():
        with pytest.raises(RpcError):
            next(rpc.stream("b", close_and_count))
        until(lambda: not b.server.serving)
        assert not began and not b.part(Producers).count()
