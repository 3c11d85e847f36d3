"""The pass of one replayed call has the gradients of a ``GraphTask``, and other graphs are left to that."""

import numpy as np
import pytest
import telegrad as tg
from telegrad.autograd_dist.captured.callee import QuietlyCompiled
from telegrad.autograd_dist.captured.straight import run_straight
from telegrad.autograd_dist.graph import SendNode
from telegrad.capture.extend import Leaving
from telegrad.core.extend import GraphTask, gradient_edge

WEIGHT = tg.randn(3, 3).requires_grad_()


def pair(x):
    return (x @ WEIGHT).tanh(), x * 2 + WEIGHT.sum()


def called(function, replays=3):
    """Return the results of a replayed call, the node of its results, and that of its argument."""
    for _ in range(replays):
        leaving = Leaving(1)
        x = tg.arange(6, dtype=tg.float32).reshape(2, 3)
        x._requires_grad, x._edge = True, (leaving, 0)
        results = function(x)
    return results, SendNode(tuple(map(gradient_edge, results)), 0, 0), leaving


@pytest.fixture
def compiled():
    return QuietlyCompiled(pair, False)


@pytest.mark.parametrize("given", ((True, True), (True, False), (False, True), (False, False)))
def test_gradients_are_those_of_a_graph_task(compiled, given):
    gradients = [np.ones((2, 3), np.float32) if each else None for each in given]
    _, root, leaving = called(compiled)
    found = run_straight(root, leaving, gradients)
    _, other, expected = called(compiled)
    leaves = {}
    task = GraphTask(sink=lambda leaf, gradient: leaves.update({id(leaf): gradient}))
    task.expect(other)
    task.feed(other, gradients)
    task.run()
    assert found is not None and found.keys() == leaves.keys()
    assert all(np.array_equal(found[each], leaves[each]) for each in found)
    assert np.array_equal(leaving.gradients[0], (expected.gradients or (None,))[0])


@pytest.mark.parametrize("times", (1, 2))
def test_its_memory_is_free_for_the_next_replay(compiled, times):
    for _ in range(times):
        _, root, leaving = called(compiled)
        run_straight(root, leaving, [np.ones((2, 3), np.float32)] * 2)
    with pytest.raises(tg.errors.AutogradError, match="freed"):
        run_straight(root, leaving, [np.ones((2, 3), np.float32)] * 2)


def test_other_graphs_are_left_to_a_task(compiled):
    results, root, leaving = called(compiled)
    gradient = np.ones((2, 3), np.float32)
    eager = called(pair)
    assert run_straight(*eager[1:], [gradient] * 2) is None
    twice = SendNode((*root.next_edges, root.next_edges[0]), 0, 0)
    assert run_straight(twice, leaving, [gradient] * 3) is None
    assert run_straight(SendNode((), 0, 0), leaving, []) is None
    results[0].grad_fn.register_hook(lambda grads, given: None)
    assert run_straight(root, leaving, [gradient] * 2) is None


def test_hooks_of_a_leaf_are_left_to_a_task(compiled):
    _, root, leaving = called(compiled)
    with WEIGHT.register_hook(lambda gradient: None):
        assert run_straight(root, leaving, [np.ones((2, 3), np.float32)] * 2) is None
