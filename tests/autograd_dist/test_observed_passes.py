"""Backward passes as an observation shows them: what has run on each worker, and what is waited for."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import telegrad as tg
from helpers.remote import Gate, SlowBackward, weights
from telegrad import autograd_dist, rpc
from telegrad.rpc.observing.records import ObservedEdge


def through_b(x):
    return rpc.rpc_sync("b", through_c, (x * 2.0,)) + 1.0


def through_c(x):
    return SlowBackward.apply(rpc.rpc_sync("c", tg.mul, (x, 3.0)))


def failing(x):
    return Failing.apply(x)


class Failing(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        raise KeyError("no gradient")


def passes():
    """Return the passes that each worker shows."""
    return {seen.worker: [each for context in seen.contexts for each in context.passes] for seen in rpc.observe()}


def test_a_backward_is_seen_while_a_node_runs_and_after_its_end(workers, until, contexts_end):
    x, (a, _, _) = weights(1, 4), workers
    Gate.event = threading.Event()
    with autograd_dist.context() as context, ThreadPoolExecutor(1) as pool:
        loss = through_b(x).sum()
        assert passes() == {"a": [], "b": [], "c": []}

        def backward():
            with a.use():
                autograd_dist.backward(context, [loss])

        under_way = pool.submit(backward)
        try:
            until(lambda: passes()["b"] and passes()["b"][0].running)
            found = passes()
        finally:
            Gate.event.set()
        under_way.result(20)
        over = passes()
    (root,), (middle,), last = found["a"], found["b"], found["c"]
    assert (root.root, root.number, root.state, middle.root, middle.state) == ("a", 1, "waits", "a", "works")
    assert middle.running == "SlowBackwardBackward" and last == []
    assert root.edges == [ObservedEdge("b", sent=1, fed=0, received=1, given=1)]
    assert middle.edges == [
        ObservedEdge("a", sent=1, fed=1, received=1, given=0),
        ObservedEdge("c", sent=1, fed=0, received=1, given=0),
    ]
    assert 0 < root.done < root.nodes and middle.done == 1
    waiting = {each.name: (each.count, each.done) for each in middle.operations}
    assert waiting["SendNode"] == (2, 1) and waiting["SlowBackwardBackward"] == (1, 0)
    assert [(each.state, each.done) for each in over["a"]] == [("over", root.nodes)]
    assert [each.state for each in over["b"] + over["c"]] == ["idle", "idle"]
    assert [each.done == each.nodes for each in over["b"] + over["c"]] == [True, True]
    assert all(edge.sent == edge.fed and edge.received == edge.given for each in over["b"] for edge in each.edges)


def test_a_failed_backward_says_why(workers, contexts_end):
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", failing, (weights(1, 4),)).sum()
        with pytest.raises(KeyError):
            autograd_dist.backward(context, [loss])
        found = passes()
    assert [each.state for each in found["a"] + found["b"]] == ["failed", "failed"]
    assert found["b"][0].failure == "KeyError: 'no gradient'"


def test_of_passes_that_are_over_only_the_last_is_shown(workers, contexts_end):
    x = weights(1, 4)
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", tg.mul, (x, 2.0)).sum()
        for _ in range(3):
            autograd_dist.backward(context, [loss], True)
        assert [(each.number, each.state) for each in passes()["a"]] == [(3, "over")]
