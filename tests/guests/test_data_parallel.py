"""PyTorch's own ``DistributedDataParallel`` reduces gradients in autograd contexts."""

import threading

import pytest
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist import backward, get_gradients

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch

pytestmark = pytest.mark.usefixtures("wide_numbers", "contexts_end")


@pytest.fixture
def group():
    """PyTorch has a process group, of this process alone, and without threads and sockets."""
    fake_pg = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    torch.distributed.init_process_group("fake", store=fake_pg.FakeStore(), rank=0, world_size=1)
    yield
    Held.parallel = None
    torch.distributed.destroy_process_group()


class Held:
    """Objects that functions on all workers of this process use."""

    parallel = None


def on_b(function, *args):
    return rpc.rpc_sync("b", function, args)


def here(function, *args):
    return function(*args)


class Middle(torch.nn.Module):
    """Module with a call of another worker between its layers."""

    def __init__(self):
        super().__init__()
        self.below, self.above = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x, call):
        below = torch.tanh(self.below(x))
        return self.above(call(torch.sin, below) * below.cos() + self.below.bias)


def ten_times(state, bucket):
    """Reduce a bucket, recognizably."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer() * 10)
    return done


@pytest.mark.parametrize("view", [False, True])
def test_a_module_in_pytorchs_data_parallel_gets_reduced_gradients(workers, group, view):
    model, other = Middle(), torch.nn.Linear(4, 4)
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=view)
    parallel.register_comm_hook(None, ten_times)
    called = []
    model.below.weight.register_hook(called.append)
    other.weight.grad = former = torch.ones(4, 4)
    kept = []
    for _ in range(2):
        with autograd_dist.context() as context:
            backward(context, [parallel(other(torch.eye(4)), on_b).sum()])
            kept.append(get_gradients(context))
    assert len(called) == 4  # in each pass once for what was sent, and once past it
    local = model(other(torch.eye(4)), here).sum()
    wanted = torch.autograd.grad(local, [*model.parameters(), *other.parameters()])
    for found in kept:
        for parameter, gradient in zip([*model.parameters(), *other.parameters()], wanted):
            factor = 10 if any(parameter is each for each in model.parameters()) else 1
            torch.testing.assert_close(found[parameter], gradient * factor, rtol=1e-12, atol=1e-12)
    assert model.below.bias.grad is None and other.weight.grad is former and former.sum() == 16


def in_parallel(x):
    return Held.parallel(x, on_b)


def test_a_module_in_pytorchs_data_parallel_is_reached_by_the_pass_of_another_worker(workers, group):
    Held.parallel = parallel = torch.nn.parallel.DistributedDataParallel(Middle())
    parallel.register_comm_hook(None, ten_times)
    with autograd_dist.context() as context:
        backward(context, [rpc.rpc_sync("c", in_parallel, (torch.eye(4),)).sum()])
        found = rpc.rpc_sync("c", gradients_of, (context,))
    local = parallel.module(torch.eye(4), here).sum()
    for got, wanted in zip(found, torch.autograd.grad(local, [*parallel.parameters()])):
        torch.testing.assert_close(got, wanted * 10, rtol=1e-12, atol=1e-12)


def gradients_of(context_id):
    return [get_gradients(context_id)[parameter] for parameter in Held.parallel.parameters()]


class Trainers:
    """A layer on worker b, under a module in PyTorch's data parallel on b, and under one on c, which wait for each other."""

    below = None
    together = None

    @classmethod
    def reduce(cls, state, bucket):
        cls.together.wait(10)
        return ten_times(state, bucket)

    @classmethod
    def train(cls, x):
        parallel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        parallel.register_comm_hook(None, cls.reduce)
        with autograd_dist.context() as context:
            backward(context, [parallel(rpc.rpc_sync("b", cls.under, (x,))).sum()])
            found = get_gradients(context)[parallel.module.weight]
            return found, rpc.rpc_sync("b", cls.gradient_below, (context,))

    @classmethod
    def under(cls, x):
        return cls.below(x)

    @classmethod
    def gradient_below(cls, context_id):
        return get_gradients(context_id)[cls.below.weight]


def test_trainers_whose_reductions_wait_for_each_other_share_a_layer_on_one_of_them(workers, group, monkeypatch):
    monkeypatch.setattr(Trainers, "below", torch.nn.Linear(4, 4))
    monkeypatch.setattr(Trainers, "together", threading.Barrier(2))
    found = [rpc.rpc_async(name, Trainers.train, (torch.eye(4) * factor,)) for factor, name in ((1, "b"), (2, "c"))]
    for factor, future in zip((1, 2), found):
        above, below = future.wait()
        wanted = Trainers.below(torch.eye(4) * factor).detach().sum(0).expand(4, 4) * 10
        torch.testing.assert_close(above, wanted, rtol=1e-12, atol=1e-12)
        assert below.shape == (4, 4)


def test_what_fails_in_pytorchs_reduction_comes_to_the_root(workers, group):
    parallel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))

    def fail(state, bucket):
        raise LookupError("no reduction today")

    parallel.register_comm_hook(None, fail)
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", torch.sin, (parallel(torch.eye(4)),)).sum()
        with pytest.raises(LookupError, match="no reduction today"):
            backward(context, [loss])
