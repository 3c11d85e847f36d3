"""Contexts as programs open them: they end on every worker, do not nest, and have ids of their own."""

import threading

import pytest
import telegrad as tg
from helpers.remote import Gate, there_and_back, wait_at_gate, weights
from telegrad import autograd_dist, rpc
from telegrad.core.errors import RpcError

pytestmark = pytest.mark.usefixtures("contexts_end")


def contexts(workers):
    return [agent.debug_info()["contexts"] for agent in workers]


def test_contexts_end_everywhere(workers, until):
    x = weights(1, 3)
    with autograd_dist.context() as context:
        there_and_back(x, ["b", "c"])
        assert contexts(workers) == [1, 1, 1]
        assert rpc.rpc_sync("b", there_is, (context,))
    until(lambda: contexts(workers) == [0, 0, 0])
    assert not rpc.rpc_sync("b", there_is, (context,))
    with pytest.raises(RpcError, match=f"there is no autograd context {context} on worker 'a'"):
        autograd_dist.get_gradients(context)


def there_is(context):
    try:
        autograd_dist.get_gradients(context)
    except RpcError:
        return False
    return True


def test_contexts_end_after_an_exception(workers, until):
    with pytest.raises(ZeroDivisionError), autograd_dist.context():
        rpc.rpc_sync("b", tg.mul, (weights(1, 3), 2.0))
        raise ZeroDivisionError
    until(lambda: contexts(workers) == [0, 0, 0])


def test_a_context_in_a_context(workers):
    with autograd_dist.context(), pytest.raises(RpcError, match=r"you are in autograd context .* already"):
        autograd_dist.context().__enter__()
    with autograd_dist.context():
        pass


def test_a_late_message_does_not_bring_an_ended_context_back(workers, until):
    gate = threading.Event()
    Gate.event = gate
    with autograd_dist.context():
        future = rpc.rpc_async("b", call_on_when_open, (weights(1, 2),))
    gate.set()
    future.wait()
    until(lambda: contexts(workers) == [0, 0, 0])


def call_on_when_open(x):
    wait_at_gate()
    return rpc.rpc_sync("c", tg.mul, (x, 2.0))


def test_ids_of_different_workers_differ(workers):
    seen = set()
    for agent in workers:
        for _ in range(3):
            with agent.use(), autograd_dist.context() as context:
                seen.add(context)
    assert len(seen) == 9
