"""Gradients of a mesh call whose connection breaks: the request is repeated, and either message may be served."""

import threading

import pytest
import telegrad as tg
from helpers.gates import GATE, hold
from helpers.threads import until
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist.graph import ContextGraph, ReceiveNode, SendNode
from telegrad.core.extend import gradient_edge
from telegrad.rpc.extend import Method
from telegrad.rpc.meshes.answers import GivenAnswer, lose_answers
from telegrad.testing import in_process_cluster

ARRIVED = threading.Event()


@pytest.fixture
def two():
    GATE.clear()
    ARRIVED.clear()
    with in_process_cluster("a", "b") as agents, agents[0].use():
        yield agents
        GATE.set()


def double(x):
    ARRIVED.set()
    hold()
    return x * 2.0


def break_connection(near):
    """Close the session to b; return when another one is open."""
    link = near.peers.find("b").link
    broken = link.dialed
    broken.close()
    until(lambda: link.dialed not in (None, broken))


@pytest.mark.parametrize("mode", ["fast", "smart"])
def test_gradients_reach_a_request_that_was_served_and_counts_as_lost(two, mode):
    x = tg.ones(3, requires_grad=True)
    with autograd_dist.context() as context:
        values = rpc.mesh(["b"]).call_async(double, (x,))
        assert ARRIVED.wait(30)
        break_connection(two[0])
        GATE.set()
        autograd_dist.backward(context, [values["b"].sum()], mode=mode)
        assert autograd_dist.get_gradients(context)[x].tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("mode", ["fast", "smart"])
def test_gradients_reach_a_request_whose_answer_was_lost(two, monkeypatch, mode):
    near = two[0]
    x, lost = tg.ones(3, requires_grad=True), []

    def lose_first(message, complete=near.caller.complete):
        if message.method == Method.MESH and not lost:
            lost.append(message)
        else:
            complete(message)

    monkeypatch.setattr(near.caller, "complete", lose_first)
    GATE.set()
    with autograd_dist.context() as context:
        values = rpc.mesh(["b"]).call_async(double, (x,))
        until(lambda: lost)
        break_connection(near)
        autograd_dist.backward(context, [values["b"].sum()], mode=mode)
        assert autograd_dist.get_gradients(context)[x].tolist() == [2.0, 2.0, 2.0]


def test_the_loss_of_a_request_that_was_repeated_may_be_known_late():
    graph = ContextGraph(1)
    node = SendNode((gradient_edge(tg.ones(3, requires_grad=True)),), 7, 1)
    graph.add_send(node, 1)
    graph.add_send(node, 2)
    graph.forget_send(node, 1)
    assert graph.send_node(7) is node
    graph.forget_send(node, 2)
    assert graph.send_node(7) is None


def test_both_messages_have_one_receive_node():
    graph, node = ContextGraph(1), ReceiveNode(1, 7, 0, 1)
    assert graph.add_receive(node) is node
    assert graph.add_receive(ReceiveNode(1, 7, 0, 1)) is node and graph.receive_nodes() == [node]


class Told:
    """Codec that notes which answers were replaced."""

    def __init__(self):
        self.replies = []

    def replaced(self, reply):
        self.replies.append(reply)


def test_an_answer_is_replaced_if_the_parent_asks_for_it_again_also_while_it_is_sent():
    told, lock = Told(), threading.Lock()
    first, second, third = answers = [GivenAnswer(0), GivenAnswer(2), GivenAnswer(2)]
    first.sent("first", told)
    second.sent("second", told)
    lose_answers(answers, 2, lock, told)
    assert told.replies == ["second"] and answers == [first]
    third.sent("third", told)
    assert told.replies == ["second", "third"]
    lose_answers(answers, 0, lock, told)
    assert told.replies == ["second", "third", "first"] and answers == []
