"""Launchers of a job on several nodes, as state machines: who may join, which ranks each gets, who failed first."""

import itertools
import socket
import stat
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from queue import Queue

import pytest
from helpers.certificates import authority
from telegrad.launcher.errors import NodeError, TokenError
from telegrad.launcher.nodes import listener as listener_module
from telegrad.launcher.nodes.assignment import Assignment, NodeFacts, Placement
from telegrad.launcher.nodes.exchange import NODE_PROTOCOL, NodeProof
from telegrad.launcher.nodes.exchange import prove as prove_token
from telegrad.launcher.nodes.listener import NodeListener
from telegrad.launcher.nodes.member import connect, prove
from telegrad.launcher.nodes.options import parse_endpoint, parse_nodes
from telegrad.launcher.nodes.outcome import Outcome, Outcomes
from telegrad.launcher.nodes.token import new_token, read_token
from telegrad.rpc.security.proofs import GREETING, AcceptorProof


def facts(host="h", slots=1, rank=None, nodes=(2, 2), roles=None, name="worker", version="1", **more):
    return NodeFacts(host, slots, rank, nodes, roles, name, version, **more)


def assigned(*nodes, most=None):
    """The parts of nodes that joined in this order."""
    count = (len(nodes), most or len(nodes))
    assignment = Assignment(facts(nodes=count, roles=nodes[0].get("roles")), join_seconds=5)
    for node in nodes:
        assignment.join(facts(**{"nodes": count, **node}), now=0.0)
    assert assignment.complete(6.0)
    return assignment.placements("master", 4711)


@pytest.mark.parametrize("message", [[], {"host": "h"}, {**vars(facts()), "nodes": 2}])
def test_what_is_no_facts_of_a_launcher(message):
    with pytest.raises(NodeError, match="one of another version; install the same telegrad on all"):
        NodeFacts.from_message(message)


def test_facts_of_which_some_are_new():
    assert NodeFacts.from_message({**vars(facts(version="2")), "news": 1}).version == "2"


# -- ranks


def test_ranks_are_blocks_in_the_order_of_the_nodes():
    parts = assigned({"host": "b", "rank": 1, "slots": 2}, {"host": "a", "rank": 0, "slots": 3})
    assert [(part.node, part.host, part.first_rank, part.workers) for part in parts] == [
        (1, "b", 3, ("worker3", "worker4")),
        (0, "a", 0, ("worker0", "worker1", "worker2")),
    ]
    assert {(part.world_size, part.master_host, part.master_port) for part in parts} == {(5, "master", 4711)}


def test_nodes_without_a_number_take_the_next():
    parts = assigned({"host": "x"}, {"host": "a", "rank": 0}, {"host": "y"})
    assert [part.node for part in parts] == [1, 0, 2]


def test_roles_are_shared_out():
    parts = assigned(*({"rank": rank, "roles": "ps,trainer=6", "slots": 0} for rank in range(3)))
    assert [part.workers for part in parts] == [
        ("ps", "trainer0", "trainer1"),
        ("trainer2", "trainer3"),
        ("trainer4", "trainer5"),
    ]
    with pytest.raises(NodeError, match="makes 1 workers for 2 nodes"):
        assigned({"roles": "ps", "slots": 0}, {"roles": "ps", "slots": 0})


def test_an_elastic_job_begins_when_no_further_node_comes():
    assignment = Assignment(facts(nodes=(2, 4)), join_seconds=5)
    assignment.join(facts(nodes=(2, 4)), 0.0)
    assert not assignment.complete(100.0)
    assignment.join(facts(nodes=(2, 4)), 100.0)
    assert not assignment.complete(104.0)
    assignment.join(facts(nodes=(2, 4)), 104.0)
    assert not assignment.complete(108.0) and assignment.complete(109.0)
    with pytest.raises(NodeError, match="has begun without this node"):
        assignment.join(facts(nodes=(2, 4)), 110.0)


def test_a_job_begins_at_once_with_the_most():
    assignment = Assignment(facts(), join_seconds=5)
    for _ in range(2):
        assert not assignment.complete(0.0)
        assignment.join(facts(), 0.0)
    assert assignment.complete(0.0)


def test_who_is_missing():
    assignment = Assignment(facts(nodes=(3, 3)), join_seconds=5)
    assignment.join(facts(rank=1, nodes=(3, 3)), 0.0)
    assert assignment.missing() == "1 of 3 nodes came; --node-rank 0, 2 did not"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"version": "2"}, "this node has telegrad 2, node 0 has 1; install the same"),
        ({"nodes": (2, 3)}, r"started with --nnodes 2:3, node 0 with 2; give all the same"),
        ({"roles": "ps"}, r"started with --roles ps, node 0 with \(none\)"),
        ({"name": "w"}, "started with --name w, node 0 with worker"),
        ({"rank": 0}, "another node has --node-rank 0"),
        ({"clock": 0.0}, r"clocks of this node and of node 0 differ by \d+ minutes"),
    ],
)
def test_nodes_that_contradict(other, words):
    assignment = Assignment(facts(), join_seconds=5)
    assignment.join(facts(rank=0), 0.0)
    with pytest.raises(NodeError, match=words):
        assignment.join(facts(**other), 0.0)
    assert len(assignment.joined) == 1


def test_a_part_survives_its_message():
    (part,) = assigned({"slots": 2})
    assert Placement.from_message(part.as_message()) == part


# -- outcomes

WORKERS = [("a0", "a1"), ("b0",), ("c0",)]


def test_the_node_whose_worker_was_lost_by_the_others_is_the_cause():
    ends = {
        0: Outcome(1, "a1 failed", lost=("b0",)),
        1: Outcome(9, "b0 failed"),
        2: Outcome(1, "c0 failed", lost=("a1", "b0")),
    }
    for order in itertools.permutations(ends):
        outcomes = Outcomes(WORKERS)
        for node in order:
            assert not outcomes.complete
            outcomes.add(node, ends[node])
        assert outcomes.complete and outcomes.verdict() == (1, ends[1])


def test_nodes_that_blame_one_another_or_were_only_ended():
    outcomes = Outcomes(WORKERS)
    outcomes.add(2, Outcome(1))
    outcomes.add(0, Outcome(1, "a0 failed", lost=("b0",)))
    outcomes.add(1, Outcome(1, "b0 failed", lost=("a0",)))
    assert outcomes.verdict()[0] == 1
    assert Outcomes(WORKERS).verdict() is None


def test_a_node_that_is_gone_is_the_cause_of_those_that_lost_its_workers():
    outcomes = Outcomes(WORKERS)
    outcomes.add(0, Outcome(1, "a0 failed", lost=("c0",)))
    outcomes.add(2, Outcome(1, "its launcher is gone", gone=True))
    assert outcomes.failed and outcomes.verdict()[0] == 2
    outcomes.add(2, Outcome(0))  # the first word counts
    assert outcomes.verdict()[0] == 2


def test_an_outcome_survives_its_message():
    outcome = Outcome(3, "x", ("y",), ("z",), True)
    assert Outcome.from_message(outcome.as_message()) == outcome


# -- the token

TOKEN, OTHER = new_token().encode(), new_token().encode()
EXPIRED_TOKEN = b"telegrad-1000000000-" + TOKEN[-64:]


class Link:
    """One end of a connection of messages between two threads."""

    def __init__(self, own, other):
        self.own, self.other = own, other

    def send_bytes(self, content):
        self.other.put(content)

    def receive_bytes(self, most, deadline):
        message = self.own.get(timeout=30)
        assert len(message) <= most
        return message


def exchange(node_token=TOKEN, host_token=TOKEN, seen=b"certificate", change=bytes):
    """Return the facts that the host learns from a node whose proof is changed on its way."""
    to_host, to_node, changed = Queue(), Queue(), []

    class Changing(Link):
        def send_bytes(self, content):
            changed.append(content)
            super().send_bytes(change(content) if len(changed) == 2 else content)

    def answer():
        proof = NodeProof(Link(to_host, to_node), host_token, b"certificate")
        try:
            told = proof.check(0.0)
        except TokenError:
            to_node.put(b"")  # as the end of a connection
            raise
        proof.answer()
        return told

    with ThreadPoolExecutor(1) as pool:
        host = pool.submit(answer)
        with suppress(TokenError):
            prove_token(Changing(to_node, to_host), node_token, seen, b"facts", 0.0)
        return host.result()


def test_both_ends_prove_the_token():
    assert exchange() == b"facts"


@pytest.mark.parametrize("given", [{"node_token": OTHER}, {"seen": b"of someone in between"}])
def test_a_node_with_another_token_or_behind_someone_else_is_refused(given):
    with pytest.raises(TokenError, match=r"^it does not know the token of this job$"):
        exchange(**given)


def asked(token, answers):
    """Prove the token to a host whose messages these functions make of what the node has sent."""
    sent, to_node = Queue(), Queue()

    class Answering(Link):
        def receive_bytes(self, most, deadline):
            to_node.put(answers.pop(0)(sent.get(timeout=30)))
            return super().receive_bytes(most, deadline)

    prove_token(Answering(to_node, sent), token, b"certificate", b"facts", 0.0)


def test_a_host_without_the_token_is_refused():
    false = AcceptorProof(OTHER, NODE_PROTOCOL)
    with pytest.raises(TokenError, match="--rdzv-endpoint does not know the token"):
        asked(TOKEN, [false.challenge, lambda _: false.welcome(b"")])
    with pytest.raises(TokenError):
        asked(TOKEN, [false.challenge, lambda proof: proof[32:64]])  # the node's own proof, reflected


def test_a_host_of_another_version_is_named():
    with pytest.raises(NodeError, match=r"speaks protocol 2, this one 1; install the same version of telegrad"):
        asked(TOKEN, [lambda _: GREETING.pack(NODE_PROTOCOL + 1, bytes(32))])


def test_what_answers_no_greeting_is_no_launcher():
    with pytest.raises(ConnectionAbortedError, match="does not answer as a launcher"):
        asked(TOKEN, [lambda _: b"220 mail.example.org ESMTP"])


def test_what_sends_no_greeting_has_no_proof():
    to_host = Queue()
    to_host.put(b"GET / HTTP/1.1")
    with pytest.raises(TokenError, match="no proof of the token"):
        NodeProof(Link(to_host, Queue()), TOKEN, b"certificate").check(0.0)


def test_no_byte_of_a_proof_can_be_changed():
    for place in range(32 + 32 + len(b"facts")):
        with pytest.raises(TokenError):
            exchange(change=lambda proof, place=place: proof[:place] + bytes([proof[place] ^ 1]) + proof[place + 1 :])


def test_tokens_come_from_a_private_file_or_the_environment(tmp_path, monkeypatch):
    token, file = new_token(), tmp_path / "token"
    monkeypatch.delenv("TELEGRAD_TOKEN", raising=False)
    with pytest.raises(TokenError, match=r"needs a token; print one with `telegrad token`"):
        read_token(None)
    monkeypatch.setenv("TELEGRAD_TOKEN", token)
    assert read_token(None) == token.encode()
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    assert read_token(file) == token.encode()
    file.chmod(stat.S_IRUSR | stat.S_IRGRP)
    with pytest.raises(TokenError, match=r"others can use the token file .*chmod 600"):
        read_token(file)
    monkeypatch.setenv("TELEGRAD_TOKEN", "password")
    with pytest.raises(TokenError, match="TELEGRAD_TOKEN holds no token"):
        read_token(None)
    with pytest.raises(TokenError, match="cannot be read: No such file"):
        read_token(tmp_path / "nowhere")


def test_a_token_has_an_end_that_nobody_can_change(monkeypatch):
    with pytest.raises(ValueError, match="valid for more than 0 and at most 366 days, you gave -1"):
        new_token(-1)
    token = new_token(1)
    monkeypatch.setenv("TELEGRAD_TOKEN", token)
    now = time.time()
    with monkeypatch.context() as later:
        later.setattr(time, "time", lambda: now + 86401)
        with pytest.raises(
            TokenError, match=r"the token in TELEGRAD_TOKEN has expired, on \d+-\d+-\d+ at .*telegrad token"
        ):
            read_token(None)
    word, end, random = token.split("-")
    with pytest.raises(TokenError):
        exchange(node_token=f"{word}-{int(end) + 1}-{random}".encode(), host_token=token.encode())


# -- the listener


@pytest.fixture
def received():
    """``received(token)`` makes a listener on the loopback; returns it, its port, and what the nodes told."""
    with ExitStack() as stack:

        def receive(token=TOKEN):
            told = Queue()
            with closing(socket.create_server(("127.0.0.1", 0))) as free:
                port = free.getsockname()[1]
            listener = NodeListener("127.0.0.1", port, token, authority(), lambda _, facts: told.put(facts))
            stack.callback(listener.close, 10)
            return listener, port, told

        yield receive


def shown(port, token, facts=b"facts"):
    prove(connect("127.0.0.1", port), token, facts).close()


def test_refused_connections_are_counted_and_logged_by_reason(received, caplog):
    listener, port, told = received()
    old, old_port, told_old = received(EXPIRED_TOKEN)
    for _ in range(3):
        with pytest.raises(OSError):
            shown(port, OTHER)
    with pytest.raises(OSError):
        shown(old_port, EXPIRED_TOKEN)
    shown(port, TOKEN)
    assert told.get(timeout=30) == b"facts" and told_old.empty()
    assert dict(listener.refused) == {"it does not know the token of this job": 3}
    assert dict(old.refused) == {"the token of this job has expired": 1}
    listener.close(10)
    assert caplog.text.count("refused a connection from 127.0.0.1: it does not know the token") == 1
    assert caplog.text.count("refused a connection from 127.0.0.1: the token of this job has expired") == 1
    assert "the launcher refused 3 connections: it does not know the token of this job (3)" in caplog.text


def test_a_connection_that_the_system_gives_no_thread_is_refused_and_the_next_one_served(received, monkeypatch):
    listener, port, told = received()
    start, failures = threading.Thread.start, [RuntimeError("can't start new thread")]

    def start_or_fail(thread):
        if failures and thread.name == "telegrad-node-listener":
            raise failures.pop()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_fail)
    with pytest.raises(OSError):
        shown(port, TOKEN)
    shown(port, TOKEN)
    assert told.get(timeout=30) == b"facts"
    assert dict(listener.refused) == {"this machine gives no more threads": 1}


def test_a_crowd_that_hangs_up_takes_no_place_and_one_that_says_nothing_a_while(received, monkeypatch):
    monkeypatch.setattr(listener_module, "MOST_PENDING", 2)
    monkeypatch.setattr(listener_module, "NODE_HANDSHAKE_SECONDS", 0.5)
    listener, port, told = received()
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    shown(port, TOKEN)
    assert told.get(timeout=30) == b"facts"
    assert sum(listener.refused.values()) >= 10
    for stranger in crowd:
        stranger.close()


def test_a_crowd_that_says_nothing_displaces_its_own(received, monkeypatch):
    monkeypatch.setattr(listener_module, "MOST_PENDING", 4)
    monkeypatch.setattr(listener_module, "NODE_HANDSHAKE_SECONDS", 3600)
    _, port, told = received()
    with ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(20)]
        shown(port, TOKEN)
        assert told.get(timeout=30) == b"facts"
        crowd[0].settimeout(30)
        assert crowd[0].recv(1) == b"", "the oldest made room"


# -- options


@pytest.mark.parametrize(("text", "found"), [("2", (2, 2)), ("2:8", (2, 8)), (" 1:1", (1, 1))])
def test_numbers_of_nodes(text, found):
    assert parse_nodes(text) == found


@pytest.mark.parametrize("text", ["", "0", "3:2", "two", "1:", "1:2:3", "-1", "99999"])
def test_what_is_no_number_of_nodes(text):
    with pytest.raises(ValueError, match="cannot read --nnodes"):
        parse_nodes(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [("node0", ("node0", 29400)), ("10.0.0.1:80", ("10.0.0.1", 80)), ("[fd00::1]:80", ("fd00::1", 80))],
)
def test_endpoints(text, found):
    assert parse_endpoint(text) == found


@pytest.mark.parametrize("text", ["", ":80", "a:b", "a:99999", "a:0", "fd00::1", "[fd00::1"])
def test_what_is_no_endpoint(text):
    with pytest.raises(ValueError, match="cannot read --rdzv-endpoint"):
        parse_endpoint(text)
