"""Contexts as programs open them: they end on every worker, do not nest, and have ids of their own."""

import asyncio
import threading

import pytest
import telegrad as tg
from helpers.remote import Gate, there_and_back, wait_at_gate, weights
from telegrad import autograd_dist, rpc
from telegrad.base.errors import RpcError

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


def test_looking_up_a_gradient_that_is_not_there_says_why(workers):
    x = weights(1, 3)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [there_and_back(x, ["b"]).sum()])
        gradients = autograd_dist.get_gradients(context)
        assert gradients.get(weights(1, 3)) is None and list(gradients) == [x]
        with pytest.raises(KeyError, match=r"reached this tensor of shape \(3,\) on this worker"):
            gradients[weights(1, 3)]
        with pytest.raises(KeyError, match="leaf tensors of this worker; you gave str"):
            gradients["x"]


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


def test_a_thread_has_contexts_of_its_own(workers, thread):
    x, (a, _, _), ids = weights(1, 3), workers, []

    def other():
        with a.use(), autograd_dist.context() as context:
            ids.append(context)
            autograd_dist.backward(context, [rpc.rpc_sync("b", tg.mul, (x, 5.0)).sum()])
            ids.append(autograd_dist.get_gradients(context)[x].tolist())

    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", tg.mul, (x, 2.0)).sum()
        thread(other).join(30)
        autograd_dist.backward(context, [loss])
        assert autograd_dist.get_gradients(context)[x].tolist() == [2.0] * 3
    assert ids == [ids[0], [5.0] * 3] and ids[0] != context


def test_a_thread_takes_part_in_a_context_by_its_id(workers, thread):
    x, (a, _, _), found = weights(1, 3), workers, []
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", tg.mul, (x, 2.0)).sum()

        def other():
            with a.use():
                autograd_dist.backward(context, [loss])
                found.append(autograd_dist.get_gradients(context)[x].tolist())

        thread(other).join(30)
    assert found == [[2.0] * 3]


def test_coroutines_have_contexts_of_their_own_that_do_not_mix(workers):
    """Each is in its context while it waits for calls, and others run."""
    x = weights(1, 3)

    async def train(factor):
        with autograd_dist.context() as context:
            y = x
            for worker in "bcb":
                y = await rpc.rpc_async(worker, tg.mul, (y, factor))
            await asyncio.to_thread(autograd_dist.backward, context, [y.sum()])
            return context, autograd_dist.get_gradients(context)[x].tolist()

    async def both():
        return await asyncio.gather(*(train(factor) for factor in (1.0, 2.0, 3.0)))

    found = asyncio.run(both())
    assert [gradient for _, gradient in found] == [[1.0] * 3, [8.0] * 3, [27.0] * 3]
    assert len({context for context, _ in found}) == 3


def test_a_context_in_a_context_of_a_coroutine(workers):
    async def nested():
        with autograd_dist.context(), autograd_dist.context():
            pass

    with pytest.raises(RpcError, match=r"you are in autograd context .* already"):
        asyncio.run(nested())


def test_a_called_function_is_in_the_context_of_its_call(workers):
    """So it cannot enter another, and its own calls belong to it."""
    with autograd_dist.context(), pytest.raises(RpcError, match=r"you are in autograd context .* already"):
        rpc.rpc_sync("b", enter_another)
    rpc.rpc_sync("b", enter_another)


def enter_another():
    with autograd_dist.context():
        pass
