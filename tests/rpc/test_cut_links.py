"""Links between agents of one process are cut: calls fail by name, control messages pass through others, workers stay."""

import errno
import threading
import time
from types import SimpleNamespace

import pytest
from telegrad import rpc
from telegrad.base.errors import AgentClosedError, LinkCutError, RpcError, WorkerLostError
from telegrad.core.futures import Future
from telegrad.rpc.extend import GrpcRpcBackendOptions, InProcessLane, InProcessNetwork
from telegrad.rpc.group.shutdown import Shutdown
from telegrad.rpc.links.reports import Evidence, LinkFinding, Report, encode_report
from telegrad.rpc.links.suspicion import Suspicion, Trouble
from telegrad.rpc.losses.events import Reached, ReportReceived, Unreachable
from telegrad.rpc.wire.control import ControlMessage
from telegrad.rpc.wire.messages import Topic
from telegrad.testing import in_process_cluster

SILENT = ConnectionResetError("no answer")
REFUSED = ConnectionRefusedError("nobody listens")
OWN = OSError(errno.EMFILE, "too many open files")


class Links(InProcessNetwork):
    """A network whose links can be cut: pairs of ranks, each with the error that dialing gives."""

    def __init__(self):
        super().__init__()
        self.cuts = {}
        self.sessions = []

    def cut(self, one, other, error):
        pair = frozenset((one, other))
        self.cuts[pair] = error
        for between, session in list(self.sessions):
            if between == pair and session.other is not None:
                session.other.fail(ConnectionResetError("cut"))
                session.fail(ConnectionResetError("cut"))

    def mend(self):
        self.cuts.clear()


class CutLane(InProcessLane):
    def dial(self, host, peer, address):
        pair = frozenset((host.me.record.rank, peer.rank))
        session = super().dial(host, peer, address)
        connect = session.connect

        def start():
            if error := self.network.cuts.get(pair):
                session.fail(error)
            else:
                self.network.sessions.append((pair, session))
                connect()

        session.connect = start
        return session


@pytest.fixture
def network():
    return Links()


@pytest.fixture
def agents(network):
    options = GrpcRpcBackendOptions(rpc_timeout=30, keepalive=0.5, reconnect_timeout=0.5)
    with in_process_cluster("a", "b", "c", options=options, make_lane=lambda: CutLane(network)) as made:
        yield made


def call(agent, to):
    with agent.use():
        return rpc.rpc_sync(to, abs, (-3,))


def slowly():
    time.sleep(1)
    return 3


@pytest.mark.parametrize("error", [SILENT, REFUSED], ids=["silent", "refused"])
@pytest.mark.slow
def test_calls_over_a_cut_link_fail_by_name_and_work_again_when_it_is_back(agents, network, error, until):
    a, b, c = agents
    assert call(a, "b") == call(b, "a") == call(c, "a") == 3
    network.cut(0, 1, error)
    until(lambda: a.peers.at(1).cut and b.peers.at(0).cut)
    with pytest.raises(LinkCutError, match=r"'b'.*worker 'c' reaches it") as caught:
        call(a, "b")
    assert caught.value.worker == "b"
    with pytest.raises(LinkCutError, match="'a'"):
        call(b, "a")
    assert call(a, "c") == call(c, "a") == call(b, "c") == call(c, "b") == 3
    assert "cut" in a.debug_info()["peers"]["b"]["state"]
    network.mend()
    until(lambda: not a.peers.at(1).cut and not b.peers.at(0).cut)
    assert call(a, "b") == call(b, "a") == 3
    assert not any(peer.gone for agent in agents for peer in agent.peers)


def test_control_messages_pass_through_others(agents, network, until):
    """A graceful shutdown, and references before it, need no call over the link that is cut."""
    a, b, _ = agents
    assert call(a, "b") == 3
    with a.use():
        reference = rpc.remote("b", list, ((1, 2),))
        assert reference.to_here() == [1, 2]
    network.cut(0, 1, SILENT)
    until(lambda: a.peers.at(1).cut and b.peers.at(0).cut)
    del reference
    until(lambda: not any(b.debug_info()["references"].values()))
    for agent in agents:
        agent.part(Shutdown).begin()
    for agent in agents:
        agent.part(Shutdown).finished.wait(30)
    assert not any(peer.gone for agent in agents for peer in agent.peers)


def test_a_worker_that_nobody_reaches_is_expelled(agents, network, until):
    a, b, c = agents
    assert call(a, "b") == call(c, "b") == 3
    with a.use():
        pending = rpc.rpc_async("b", slowly)
    network.cut(0, 1, SILENT)
    network.cut(2, 1, SILENT)
    with pytest.raises(WorkerLostError, match=r"'b'.*says worker .*confirmed by"):
        pending.wait()
    until(lambda: b.closed and c.peers.at(1).gone)
    assert "expelled" in b.closed and a.peers.at(1).gone == c.peers.at(1).gone
    with pytest.raises(AgentClosedError, match="expelled"):
        call(b, "a")
    assert call(a, "c") == 3


@pytest.mark.slow
def test_a_failure_of_ones_own_is_no_evidence(agents, network):
    a, _, c = agents
    network.cut(0, 1, OWN)
    ends = time.monotonic() + 3  # three times as long as silence may last
    while time.monotonic() < ends:
        with pytest.raises(RpcError, match="not sent"):
            call(a, "b")
    assert not a.peers.at(1).suspicion.trouble and not a.peers.at(1).gone
    network.mend()
    assert call(a, "b") == call(c, "b") == 3


def test_a_goodbye_reaches_those_who_have_no_session(agents, until):
    a, b, c = agents
    assert call(a, "b") == 3
    b.close("it has shut down")
    until(lambda: a.peers.at(1).gone and c.peers.at(1).gone)
    assert "shut down" in c.peers.at(1).gone


# -- not known to be cut yet

NO_LISTENER = Evidence(LinkFinding.DEAD, "no process listens there")
SILENCE = Evidence(LinkFinding.SILENT, "it says nothing")


@pytest.fixture
def doubting():
    """An agent, one that it has not reached for long, and a list of the links that it found cut."""
    with in_process_cluster("a", "b", "c") as (a, *_):
        cuts, peer = [], a.peers.at(1)
        a.losses.on_cut.append(cuts.append)
        yield a, peer, cuts


def change(agent, action):
    """Call ``action(machine, now)`` on the agent's loop, so that none of its own looks at the time comes between."""
    done = Future()
    agent.timers.soon(lambda: done.set_result(action(agent.losses._machine(), agent.timers.now())))
    done.wait(20)


def test_a_worker_that_is_lost_by_now_is_not_called_cut_off_when_something_else_happens(doubting, until):
    a, peer, cuts = doubting

    def doubt(machine, now):
        machine.handle(Unreachable(1, NO_LISTENER), now - 1000)
        machine._seen = now
        peer.suspicion.trouble = Trouble(NO_LISTENER, now - 1000)
        a.losses._handle(Reached(2, 0))

    change(a, doubt)
    until(lambda: peer.gone)
    assert not cuts


def test_a_suspended_process_does_not_call_a_link_cut_before_others_had_time_to_answer(doubting):
    a, peer, cuts = doubting

    def suspend(machine, now):
        machine._seen = 1e-9  # at the start of the clock: a machine may run for less than 1,000 s
        peer.suspicion.trouble = Trouble(SILENCE, now - 1000)
        a.losses.watch()

    change(a, suspend)
    assert not cuts and not peer.cut


def test_losses_are_told_in_their_order_also_if_two_threads_find_them(thread):
    """A call that waits for both is to fail because of the first."""
    with in_process_cluster("a", "b", "c") as (a, *_):
        told, telling, go_on = [], threading.Event(), threading.Event()

        def tell(peer):
            telling.set()
            go_on.wait(20)
            told.append(peer.number)

        a.losses.on_lost.insert(0, tell)
        first = thread(a.losses.left, a.peers.at(2), "it has shut down", False, b"")
        assert telling.wait(20)
        a.losses.left(a.peers.at(1), "it has shut down", False, b"")  # returns at once: the other thread does it
        assert not told
        go_on.set()
        first.join(20)
        assert told == [2, 1] and a.peers.at(1).gone


def test_a_loss_that_a_handler_of_another_causes_is_told_after_it():
    with in_process_cluster("a", "b", "c") as (a, *_):
        told = []

        def tell(peer):
            if peer.number == 2:
                a.losses.left(a.peers.at(1), "it has shut down", False, b"")
            told.append(peer.number)

        a.losses.on_lost.insert(0, tell)
        a.losses.left(a.peers.at(2), "it has shut down", False, b"")
        assert told == [2, 1]


def test_a_goodbye_names_the_worker_whose_loss_its_sender_knows(agents, until):
    """Its report of the loss is held up."""
    a, b, _ = agents
    order = []
    a.losses.on_lost.append(lambda peer: order.append(peer.info.name))
    call(a, "b")
    call(b, "a")
    post = b.control.post
    b.control.post = lambda peer, topic, payload: topic == Topic.MEMBERSHIP or post(peer, topic, payload)
    b.losses.left(b.peers.at(2), "it has shut down", False, b"")
    b.close("it ends")
    until(lambda: a.peers.at(1).gone)
    assert order == ["c", "b"]


@pytest.fixture
def told(doubting, monkeypatch):
    """An agent that was told of a suspicion, and asked the suspected worker; its question does not leave."""
    a, peer, _ = doubting
    monkeypatch.setattr(a.control, "post", lambda *_: None)
    a.losses._handle(ReportReceived(2, Report(1, {1: NO_LISTENER})))
    return a.losses, peer


def test_only_the_acknowledgement_of_a_question_is_an_answer(told):
    """Others may have been on their way when the worker died."""
    losses, peer = told
    with losses._lock:
        version = losses._machine().report.version

    def acknowledged(topic, version):
        losses.answered(peer, [ControlMessage(7, encode_report(Report(version)), topic)])
        return losses._witness(peer)

    assert acknowledged(Topic.MEMBERSHIP, version - 1) is None
    assert acknowledged(Topic.QUIESCENCE, version) is None
    assert acknowledged(Topic.MEMBERSHIP, version) == "a"


def test_the_end_of_one_of_two_sessions_is_no_answer(told):
    """If the worker has died, the end of the other was not noticed yet."""
    losses, peer = told
    peer.link.accepted.append(SimpleNamespace(close=lambda error: None))
    losses.ended(peer)
    assert losses._witness(peer) is None
    peer.link.accepted.clear()


def test_evidence_that_a_worker_is_dead_counts_from_its_first_proof():
    suspicion = Suspicion()
    for error, now in [(TimeoutError(), 10.0), (TimeoutError(), 13.0)]:
        suspicion.failed(error, now, 2.0)
    assert suspicion.trouble.evidence.finding is LinkFinding.SILENT and suspicion.trouble.since == 13.0
    for now in (20.0, 25.0):
        suspicion.failed(ConnectionRefusedError(), now, 2.0)
        assert suspicion.trouble.evidence.finding is LinkFinding.DEAD and suspicion.trouble.since == 20.0


def test_time_in_which_the_system_of_a_worker_answers_a_dialer_is_no_silence():
    """A handshake may take long, and the link be cut for a moment meanwhile."""
    suspicion = Suspicion()

    def ends(now):
        suspicion.failed(TimeoutError(), now, 2.0)
        return suspicion.trouble

    ends(10.0)
    suspicion.answered(10.5)
    assert ends(15.0) is None and ends(16.0) is None
    assert ends(16.6).evidence.finding is LinkFinding.SILENT
