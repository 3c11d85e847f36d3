"""Guards of the cost of ``remote``, ``to_here`` and a drop: messages, hand-overs, Python calls; never seconds."""

import pytest
from helpers.remote import here
from telegrad import rpc
from telegrad.rpc.lanes.inproc import InProcessSession
from telegrad.rpc.threads.pool import ThreadPool
from telegrad.rpc.wire.header import FrameKind
from telegrad.rref.context import RRefContext
from telegrad.rref.numbers import ReferenceTopic
from telegrad.testing import count, in_process_cluster

STEPS = 50
TOPIC = ReferenceTopic.OWNERSHIP
MOST_PYTHON_CALLS = 250  # in the thread that calls, which in process also receives for the other side


@pytest.fixture
def workers(monkeypatch):
    """Two agents, one of them current, that do what can wait when they are told to: ``tick``."""
    monkeypatch.setattr("telegrad.rpc.threads.timers.TICK_SECONDS", 3600.0)
    with in_process_cluster("a", "b") as agents, agents[0].use():
        yield agents


@pytest.fixture
def sent(monkeypatch):
    """Frames sent by all agents, by kind, and tasks handed to threads."""
    counted = []
    send, submit = InProcessSession.send, ThreadPool.submit

    def counting_send(self, parts, *others):
        counted.append(parts[0][0])
        return send(self, parts, *others)

    def counting_submit(self, task):
        counted.append("task")
        return submit(self, task)

    monkeypatch.setattr(InProcessSession, "send", counting_send)
    monkeypatch.setattr(ThreadPool, "submit", counting_submit)
    return counted


def step():
    assert rpc.remote("b", int, ("7",)).to_here() == 7


def tick(workers):
    for agent in workers:
        agent.timers.run_waiting()


def test_a_value_takes_three_messages_and_nothing_else_is_on_its_path(workers, sent):
    step()
    sent.clear()
    for _ in range(STEPS):
        step()
    assert sent.count(FrameKind.REQUEST) == 2 * STEPS and sent.count(FrameKind.REPLY) == STEPS
    assert sent.count("task") == STEPS  # the function
    assert len(sent) == 4 * STEPS  # no control message among them


def test_confirmations_and_deletes_of_many_references_are_one_message_each(workers, sent, until):
    for _ in range(STEPS):
        step()
    sent.clear()
    owner = workers[1]
    until(lambda: not owner.server.serving)
    owner.timers.run_waiting()
    assert sent.count(FrameKind.CONTROL) == 1  # that the functions have run
    workers[0].timers.run_waiting()
    assert sent.count(FrameKind.CONTROL) == 2 == sent.count(FrameKind.ACKNOWLEDGE)  # that the references are gone
    assert sent.count("task") == 0  # numbers are let go by the thread that reads
    for agent in workers:
        assert not any(agent.debug_info()["references"].values())


def test_confirmations_that_come_after_the_drops_make_one_message_too(workers, sent, until):
    for _ in range(STEPS):
        step()
    workers[0].timers.run_waiting()  # the drops wait for the confirmations
    until(lambda: not workers[1].server.serving)
    sent.clear()
    workers[1].timers.run_waiting()
    assert sent.count(FrameKind.CONTROL) == 2 == sent.count(FrameKind.ACKNOWLEDGE)
    for agent in workers:
        assert not any(agent.debug_info()["references"].values())


def test_control_messages_that_no_thread_waits_for_are_one_frame(workers, sent, until):
    a, peer = workers[0], workers[0].peers.find("b")
    rpc.rpc_sync("b", int)  # there is a session
    sent.clear()
    for _ in range(STEPS):
        a.control.post(peer, TOPIC, b"", hurried=False)
    assert not sent
    a.timers.run_waiting()
    assert sent == [FrameKind.CONTROL, FrameKind.ACKNOWLEDGE]
    a.control.post(peer, TOPIC, b"", hurried=False)
    a.control.post(peer, TOPIC, b"")
    assert sent.count(FrameKind.CONTROL) == 2  # both are in the second
    tick(workers)
    assert a.control.open() == 0 and sent.count(FrameKind.CONTROL) == sent.count(FrameKind.ACKNOWLEDGE) == 2


def test_control_messages_that_no_thread_waits_for_leave_with_the_next_frame(workers, sent, until):
    a, peer = workers[0], workers[0].peers.find("b")
    rpc.rpc_sync("b", int)
    a.control.post(peer, TOPIC, b"", hurried=False)
    a.control.post(peer, TOPIC, b"", hurried=False)
    sent.clear()
    until(lambda: rpc.rpc_sync("b", int) == a.control.open() == 0)  # the acknowledgement leaves with an answer
    assert sent.count(FrameKind.CONTROL) == sent.count(FrameKind.ACKNOWLEDGE) == 1


def test_what_is_said_of_a_fork_that_a_user_gives_leaves_with_frames_that_leave_anyway(monkeypatch, until):
    monkeypatch.setattr("telegrad.rpc.threads.timers.TICK_SECONDS", 3600.0)
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        ownership = agents[0].part(RRefContext).ownership
        with rpc.remote("c", list, ([7],)) as reference:
            assert rpc.rpc_sync("b", here, (reference,)) == [7]
            until(lambda: rpc.rpc_sync("b", call_on, ("c",)) == ownership.counts()["pending_children"] == 0)


def call_on(to):
    return rpc.rpc_sync(to, int)


def test_a_call_of_a_method_is_two_frames_and_leaves_nothing_to_tell(workers, sent, until):
    with rpc.remote("b", list, ([7, 8],)) as reference:
        assert reference.rpc_sync().count(7) == 1
        until(lambda: not workers[1].server.serving)
        tick(workers)
        sent.clear()
        for _ in range(STEPS):
            assert reference.rpc_sync().count(7) == 1
        tick(workers)
        assert sent.count(FrameKind.REQUEST) == sent.count(FrameKind.REPLY) == sent.count("task") == STEPS
        assert len(sent) == 3 * STEPS


def test_python_calls_of_a_step(workers):
    counted = count(step)
    tick(workers)
    tick(workers)
    assert counted.python_calls.total() <= MOST_PYTHON_CALLS, counted.python_calls


def test_a_call_through_a_proxy_makes_few_calls(workers):
    """Counted in calls of Python functions, in the thread that calls and receives; 101 with Python 3.11."""
    reference = rpc.remote("b", list)
    counted = count(lambda: reference.rpc_sync().__len__(), repeats=20, warmup=5)
    assert sum(counted.python_calls.values()) < 108
