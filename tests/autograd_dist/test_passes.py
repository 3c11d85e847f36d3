"""Passes of one context: several at a time, also of one worker; parts of those that are over are forgotten."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import Gate, SlowBackward, weights
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist.contexts import contexts_of
from telegrad.autograd_dist.passes import Passes, PassId
from telegrad.base.errors import AutogradError
from telegrad.core.futures import Future


def part(pass_id):
    return SimpleNamespace(id=pass_id, finished=Future())


# -- which parts are kept


def test_a_pass_names_the_oldest_that_goes_on():
    passes = Passes(0)
    first, second = passes.begin(part), passes.begin(part)
    assert [first.id, second.id] == [PassId(0, 1, 1), PassId(0, 2, 1)]
    second.finished.set_result(None)
    assert passes.begin(part).id == PassId(0, 3, 1)
    first.finished.set_result(None)
    assert passes.begin(part).id == PassId(0, 4, 3)


def test_a_part_is_kept_until_its_pass_is_over():
    passes = Passes(5)
    kept = passes.join(PassId(0, 2, 1), part)
    other = passes.join(PassId(1, 1, 1), part)
    passes.join(PassId(0, 3, 2), part)
    assert passes.join(PassId(0, 2, 1), part) is kept
    passes.join(PassId(0, 4, 4), part)
    with pytest.raises(AutogradError, match="backward 2 of worker 0, which is over"):
        passes.join(PassId(0, 2, 1), part)
    assert passes.join(PassId(1, 1, 1), part) is other


def test_a_pass_of_this_worker_does_not_come_back():
    passes = Passes(0)
    over = passes.begin(part)
    over.finished.set_result(None)
    assert passes.join(over.id, part) is over
    passes.begin(part)
    with pytest.raises(AutogradError, match="backward 1 of worker 0, which is over"):
        passes.join(over.id, part)


def test_passes_that_go_on_are_kept_in_every_order():
    """A root begins and ends passes at random, and its messages come in any order: no part of one that goes on is lost."""
    for seed in range(300):
        rng = random.Random(seed)
        root, other, going_on, most = Passes(0), Passes(1), [], 0
        for _ in range(60):
            if rng.random() < 0.5 or not going_on:
                going_on.append(root.begin(part))
            else:
                going_on.pop(rng.randrange(len(going_on))).finished.set_result(None)
            oldest = min((each.id.number for each in going_on), default=0)
            for each in rng.sample(going_on, rng.randint(0, len(going_on))):
                assert other.join(each.id, part).id == each.id, f"seed {seed}"
            most = max(most, len(going_on) and going_on[-1].id.number - oldest + 1)
        assert len(root._parts) <= most + 1 and len(other._parts) <= most + 1, f"seed {seed}"


# -- on workers


def slow_backward(x):
    return SlowBackward.apply(x)


def doubled(x):
    return x * 2.0


@pytest.mark.parametrize("mode", ["smart", "fast"])
def test_backwards_of_one_worker_at_once_add_up(workers, until, contexts_end, mode):
    x, (a, b, _) = weights(1, 2), workers
    Gate.event = threading.Event()
    with autograd_dist.context() as context, ThreadPoolExecutor(1) as pool:
        slow = rpc.rpc_sync("b", slow_backward, (x,)).sum()
        quick = rpc.rpc_sync("b", doubled, (x,)).sum() if mode == "smart" else slow * 2.0
        try:

            def first():
                with a.use():
                    autograd_dist.backward(context, [slow], True)

            under_way = pool.submit(first)
            until(lambda: b.debug_info()["serving"])
            if mode == "fast":
                Gate.event.set()
            for _ in range(3):
                autograd_dist.backward(context, [quick], True, mode=mode)
            assert mode == "fast" or not under_way.done()
        finally:
            Gate.event.set()
        under_way.result(20)
        assert autograd_dist.get_gradients(context)[x].tolist() == [7.0, 7.0]


def test_backwards_of_many_threads_and_workers_at_once_add_up(workers, contexts_end):
    x, (a, _, _) = weights(1, 4), workers
    with autograd_dist.context() as context, ThreadPoolExecutor(6) as pool:
        losses = [rpc.rpc_sync("bc"[number % 2], through_c, (x,)).sum() for number in range(6)]

        def backward(loss):
            with a.use():
                autograd_dist.backward(context, [loss], True)

        elsewhere = [rpc.rpc_async(worker, backward_of, (context, x)) for worker in "bc" * 3]
        for _ in range(3):
            for each in [pool.submit(backward, loss) for loss in losses]:
                each.result(30)
        for call in elsewhere:
            call.wait()
        gradient = autograd_dist.get_gradients(context)[x].numpy()
        kept = [len(contexts_of(agent).find(context).passes._parts) for agent in workers]
    np.testing.assert_allclose(gradient, np.full(4, 3 * 6 * 6.0 + 6 * 2.0))
    assert max(kept) <= 3 * 7, "parts of passes that are over are forgotten"


def through_c(x):
    return rpc.rpc_sync("c", tg.mul, (x * 2.0, 3.0))


def backward_of(context, x):
    autograd_dist.backward(context, [rpc.rpc_sync("c", tg.mul, (x, 2.0)).sum()])


def test_many_passes_in_one_context_keep_a_few_parts(workers, contexts_end):
    x = weights(1, 4)
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", doubled, (x,)).sum()
        for _ in range(50):
            autograd_dist.backward(context, [loss], True)
        assert autograd_dist.get_gradients(context)[x].tolist() == [100.0] * 4
        assert [len(contexts_of(agent).find(context).passes._parts) for agent in workers[:2]] == [1, 1]
