"""Warning about a call with tensors that require grad, outside a context."""

import logging

import pytest
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.testing.cluster import cluster


def twice(tensor):
    return 2 * tensor


@pytest.fixture
def told(caplog):
    """Return a function that returns the warnings."""
    caplog.set_level(logging.WARNING, "telegrad.autograd_dist")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "telegrad.autograd_dist"]


def test_a_call_outside_a_context_is_told_once(told):
    weight = tg.ones(3, requires_grad=True)
    with cluster(2):
        for _ in range(3):
            rpc.rpc_sync("worker1", twice, (weight,))
    (text,) = told()
    assert text.startswith(
        "worker 'worker0' makes the call of twice on worker 'worker1' with tensors that require grad"
    )
    assert "`with autograd_dist.context() as context:`" in text


def test_calls_whose_gradients_are_not_wanted_or_come_back_are_not_told(told):
    weight = tg.ones(3, requires_grad=True)
    with cluster(2):
        with autograd_dist.context() as context:
            loss = rpc.rpc_sync("worker1", twice, (weight,)).sum()
            autograd_dist.backward(context, [loss])
        with tg.no_grad():
            rpc.rpc_sync("worker1", twice, (weight,))
        rpc.rpc_sync("worker1", twice, (weight.detach(),))
    assert told() == []
