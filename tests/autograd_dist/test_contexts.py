"""Ended contexts leave nothing behind that grows, and no lock of theirs is held while tensors are added."""

import contextvars
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist.contexts import contexts_of
from telegrad.autograd_dist.graph import ContextGraph, SendNode
from telegrad.autograd_dist.local_pass import LocalPass, PassKind
from telegrad.autograd_dist.numbers import GradientMethod, GradientTopic
from telegrad.autograd_dist.pass_requests import PassRequests
from telegrad.base.errors import RpcTimeoutError, WorkerLostError
from telegrad.core.extend import GraphTask, gradient_edge
from telegrad.core.futures import Future
from telegrad.testing import in_process_cluster


@pytest.fixture
def pair():
    with in_process_cluster("a", "b") as agents, agents[0].use():
        yield agents


def double(x):
    return x * 2.0


def step(x):
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [rpc.rpc_sync("b", double, (x,)).sum()])
        return autograd_dist.get_gradients(context)[x].tolist()


def counting(agent, topic, posted):
    original = agent.control.post

    def post(peer, about, payload):
        if about == topic:
            posted.append((agent.name, peer.info.name))
        original(peer, about, payload)

    agent.control.post = post


def test_steps_leave_nothing_and_share_control_messages(pair, until, monkeypatch):
    monkeypatch.setattr("telegrad.autograd_dist.news.BATCH_SECONDS", 60)
    monkeypatch.setattr("telegrad.autograd_dist.news.RIDE_SECONDS", 60)
    posted = []
    for agent in pair:
        counting(agent, GradientTopic.CONTEXT, posted)
    x = tg.ones(3, requires_grad=True)
    with autograd_dist.context():  # one that stays open, and never reaches b
        pass
    for number in range(200):
        assert step(x) == [2.0, 2.0, 2.0]
        if number % 2:
            with autograd_dist.context():  # one that stays at home
                pass
    assert [agent.debug_info()["contexts"] for agent in pair] == [0, 200] and not posted
    contexts_of(pair[0]).news.post_all()
    until(lambda: not any(agent.debug_info()["contexts"] for agent in pair))
    assert posted == [("a", "b")]
    for agent in pair:
        assert sum(len(ended.intervals()) for ended in contexts_of(agent).lifetimes.ended().values()) <= 1


def test_the_news_that_a_context_has_ended_is_sent_soon(pair, until):
    step(tg.ones(3, requires_grad=True))
    until(lambda: not any(agent.debug_info()["contexts"] for agent in pair))


def test_passes_die_with_their_context_without_the_garbage_collector(pair, until):
    x = tg.ones(3, requires_grad=True)
    step(x)
    until(lambda: not any(agent.debug_info()["contexts"] for agent in pair))
    gc.collect()
    gc.disable()
    try:
        with autograd_dist.context() as context:
            autograd_dist.backward(context, [rpc.rpc_sync("b", double, (x,)).sum()])
            passes = [weakref.ref(*contexts_of(agent).find(context).passes._parts.values()) for agent in pair]
        until(lambda: not any(agent.debug_info()["contexts"] for agent in pair))
        until(lambda: [each() for each in passes] == [None, None])
    finally:
        gc.enable()


def test_contexts_come_and_go_in_many_threads_while_workers_are_lost(cluster):
    """Each thread makes and ends its own; the driver looks through all of them when a worker is lost."""
    with cluster("a", "b") as (a, b), ThreadPoolExecutor(4) as pool:
        contexts, other = contexts_of(a), a.peers.find("b")

        def come_and_go():
            for _ in range(2_000):
                context = contexts.create()
                contexts.reach(context, b.rank)
                contexts.release(context.id)

        def look():
            for _ in range(2_000):
                contexts._on_lost(other)

        for each in [pool.submit(work) for work in (come_and_go, come_and_go, come_and_go, look)]:
            each.result(60)
        assert a.debug_info()["contexts"] == 0


def test_messages_leave_while_the_context_ends(pair):
    """A message of a context that ends meanwhile either reached its worker before, or is sent outside of it."""
    contexts = contexts_of(pair[0])
    for _ in range(200):
        context = contexts.create()
        go = threading.Barrier(2)

        def send(context=context, go=go):
            go.wait(30)
            return [contexts.reach(context, rank) for rank in range(1, 50)]

        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(send)
            contexts.agent.peers._by_rank.update({rank: pair[0].peers.at(1) for rank in range(2, 50)})
            go.wait(30)
            contexts.release(context.id)
            reached = sending.result(30)
        assert reached == sorted(reached, reverse=True)
        assert len(context.reached) == sum(reached)


# -- locks


class Calls(tg.Tensor):
    """A tensor whose sums ask the library, in another thread, for what others may need a lock."""

    ask = staticmethod(lambda: None)

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(cls.ask))
        thread.start()
        thread.join(30)
        assert not thread.is_alive(), "deadlock"
        return super().__tensor_function__(func, types, args, kwargs)


def calling(ask):
    return type("Asks", (Calls,), {"ask": staticmethod(ask)})


def test_gradients_are_added_without_the_context_s_lock():
    context, leaf = ContextGraph(1), tg.ones(2, requires_grad=True)
    other = tg.ones(2, requires_grad=True)
    kind = calling(lambda: (context.gradients(), context.accumulate(other, tg.ones(2))))
    for _ in range(3):
        context.accumulate(leaf, tg.ones(2).as_subclass(kind))
    assert context.gradients()[leaf].tolist() == [3.0, 3.0]
    assert context.gradients()[other].tolist() == [2.0, 2.0]


def test_a_gradient_added_during_a_sum_is_not_lost():
    context, leaf = ContextGraph(1), tg.ones(2, requires_grad=True)
    late = [tg.ones(2) * 10]
    kind = calling(lambda: late and context.accumulate(leaf, late.pop()))
    context.accumulate(leaf, tg.ones(2).as_subclass(kind))
    context.accumulate(leaf, tg.ones(2).as_subclass(kind))
    assert context.gradients()[leaf].tolist() == [12.0, 12.0]


class UnusualHash(tg.Tensor):
    """Its hash is a user's code."""

    asked = 0

    def __hash__(self):
        UnusualHash.asked += 1
        return 1


def test_a_leaf_s_own_hash_is_not_used_under_the_lock():
    context, leaf = ContextGraph(1), tg.ones(2).as_subclass(UnusualHash).requires_grad_()
    UnusualHash.asked = 0
    context.accumulate(leaf, np.ones(2, np.float32))
    context.accumulate(leaf, np.ones(2, np.float32))
    assert not UnusualHash.asked
    assert context.gradients()[leaf].tolist() == [2.0, 2.0]


def test_the_graph_is_walked_without_the_context_s_lock(pair, monkeypatch):
    walked = []

    def expect(task, *roots, original=tg.core.autograd.GraphTask.expect):
        context = contexts_of(pair[0]).find(current[0]).graph
        thread = threading.Thread(target=lambda: walked.append(context.gradients()))
        thread.start()
        thread.join(30)
        assert walked, "deadlock"
        return original(task, *roots)

    monkeypatch.setattr(tg.core.autograd.GraphTask, "expect", expect)
    x = tg.ones(3, requires_grad=True)
    with autograd_dist.context() as context:
        current = [context]
        autograd_dist.backward(context, [rpc.rpc_sync("a", double, (x,)).sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [2.0, 2.0, 2.0]


def test_gradients_that_come_while_the_graph_is_walked_wait_for_it(monkeypatch):
    """Two messages bring gradients at once: one thread walks the graph, the other leaves its gradients to it."""
    graph, leaves = ContextGraph(1), [tg.ones(3, requires_grad=True) for _ in range(2)]
    for number, leaf in enumerate(leaves):
        graph.add_send(SendNode((gradient_edge(leaf * 2.0),), number, 1))
    part, walking, walk_on = LocalPass(0, graph, False, True), threading.Event(), threading.Event()

    def expect(task, *roots, original=GraphTask.expect):
        walking.set()
        assert walk_on.wait(30)
        return original(task, *roots)

    monkeypatch.setattr(GraphTask, "expect", expect)
    first = threading.Thread(target=part.receive, args=([(PassKind.FED, 0, [np.ones(3, np.float32)])],))
    first.start()
    assert walking.wait(30)
    part.receive([(PassKind.FED, 1, [np.ones(3, np.float32)])])
    assert not graph.gradients()
    walk_on.set()
    first.join(30)
    assert [graph.gradients()[leaf].tolist() for leaf in leaves] == [[2.0, 2.0, 2.0]] * 2


def test_a_message_is_left_out_though_its_sender_was_told_before():
    """Its receiver said so and was lost, and the root did not learn that it had: it says so again in the receiver's place."""
    graph, leaf = ContextGraph(1), tg.ones(3, requires_grad=True)
    graph.add_send(SendNode((gradient_edge(leaf * 2.0),), 0, 1))
    part = LocalPass(0, graph, False, True)
    for _ in range(2):
        part.receive([(PassKind.UNUSED, 0, ())])
    assert not graph.gradients() and not part.unfed()


def test_only_the_loss_of_the_receiver_itself_lets_a_message_be_left_out(pair):
    there = pair[0].peers.find("b")
    lost = WorkerLostError("worker 'c' is gone", "c")
    there_is_nothing, is_no_answer = Future(), Future()
    there_is_nothing.set_exception(WorkerLostError("worker 'b' is gone", "b"))
    is_no_answer.set_exception(lost)
    answers = iter([there_is_nothing, is_no_answer])
    requests = PassRequests(pair[0], 1, (0, 1, 1), False, True)
    requests._request = lambda peer, entries: next(answers)
    assert requests.ask(there.number, [(PassKind.UNUSED, 0, ())]).wait(10) is None
    with pytest.raises(WorkerLostError, match="'c'"):
        requests.ask(there.number, [(PassKind.UNUSED, 0, ())]).wait(10)


def test_a_backward_that_times_out_says_with_whom(pair):
    here, there = pair
    here.rpc_timeout = 0.2
    answering = threading.Event()
    x = tg.ones(2, requires_grad=True)
    with autograd_dist.context() as context:
        result = rpc.rpc_sync("b", double, (x,), timeout=30).sum()
        there.server.serve(GradientMethod.PROPAGATE, lambda call: call.reply_with(None) if answering.wait(30) else None)
        with pytest.raises(RpcTimeoutError, match=r"the backward of context \d+ with 'b' got no answer"):
            autograd_dist.backward(context, [result])
        answering.set()
