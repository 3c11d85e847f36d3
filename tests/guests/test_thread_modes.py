"""Modes of PyTorch, as no_grad(), belong to one thread: another one that reads for it has its own."""

import threading

import numpy as np
import pytest
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist import backward, get_gradients

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch
from telegrad.rpc.wire.libraries.torch_tensors import library

pytestmark = pytest.mark.usefixtures("contexts_end")


class Held:
    """Call that has begun, and ends when it may."""

    begun, ends = threading.Event(), threading.Event()


def hold():
    Held.begun.set()
    assert Held.ends.wait(30)
    return torch.ones(2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_of_a_thread_are_its_own(workers, thread, mode):
    """One thread reads for all. What comes for others is as if it had no mode."""
    x = torch.ones(2, requires_grad=True)

    def read():
        with workers[0].use(), mode():
            rpc.rpc_sync("b", hold)

    Held.begun.clear(), Held.ends.clear()
    reading = thread(read)
    assert Held.begun.wait(30)
    with autograd_dist.context() as context:
        y = rpc.rpc_sync("b", torch.sin, (x,))
        fetched = rpc.remote("b", torch.cos, (x,)).to_here()
        assert y.requires_grad and fetched.requires_grad and not (y.is_inference() or fetched.is_inference())
        backward(context, [y.sum() + fetched.sum()])
        torch.testing.assert_close(get_gradients(context)[x], x.detach().cos() - x.detach().sin())
    Held.ends.set()
    reading.join(30)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_thread_that_opens_an_answer_makes_it_as_all_others(mode):
    """As in PyTorch's RPC, what the modes of the caller are does not matter for results that were recorded elsewhere."""
    elements, places = np.ones(2, np.float32), torch.tensor([[0, 3]])
    with mode():
        made = [library.connect(elements, (None, ""), (object(), 0)), library.unpack(elements, (None, ""), True)]
        made += [library.put_together(None, "sparse_coo", (4,), True, each, places) for each in made]
    assert all(each.requires_grad and not each.is_inference() for each in made)
    assert [each.is_leaf for each in made] == [False, True, False, True]
