"""Collectives, data-parallel modules, pipelines and the profiler take tensors and modules of PyTorch."""

import copy
import threading

import numpy as np
import pytest
import telegrad as tg
from telegrad import autograd_dist, collective, profiler, rpc
from telegrad.base.errors import AutogradError
from telegrad.collective.extend import AgentGroup, serve_groups
from telegrad.collective.parallel.reducer import all_reduce_hook
from telegrad.nn.parallel import DistributedDataParallel
from telegrad.pipelining import Pipeline
from telegrad.rref import RemoteModule
from telegrad.testing import in_process_cluster

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch


@pytest.fixture
def run():
    """``run(function)`` calls ``function(group)`` on two ranks, each in a thread, and returns the results or raises."""

    def on_both(function):
        with in_process_cluster("rank0", "rank1") as agents:
            for agent in agents:
                serve_groups(agent)
            groups = [AgentGroup(agent, "test", range(2), 20.0) for agent in agents]
            results = [None, None]

            def work(index):
                try:
                    with agents[index].use():
                        results[index] = function(groups[index])
                except Exception as error:
                    results[index] = error

            threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        return results

    return on_both


def checked(results):
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


# -- collectives


def test_collectives_fill_tensors_of_pytorch(run):
    def body(group):
        mine = torch.arange(6.0).reshape(2, 3).t() + group.index
        version = mine._version
        assert collective.all_reduce(mine, group=group) is None and mine._version > version
        work = collective.all_reduce(torch.ones(2) * group.index, collective.ReduceOp.MAX, group, async_op=True)
        largest = work.wait()
        parts = [torch.empty(3), torch.empty(3)]
        collective.all_gather(parts, torch.full((3,), float(group.index)), group=group)
        given = torch.zeros(2, dtype=torch.int64) + group.index
        collective.broadcast(given, 1, group=group)
        whole = torch.empty(4)
        collective.all_gather_into_tensor(whole, torch.tensor([1.0, 2.0]) * (group.index + 1), group=group)
        # Ranks may have different libraries.
        mixed = torch.ones(2) if group.index else tg.ones(2)
        collective.all_reduce(mixed, group=group)
        return mine, largest, torch.stack(parts), given, whole, mixed.tolist()

    for mine, largest, parts, given, whole, mixed in checked(run(body)):
        assert torch.equal(mine, 2 * torch.arange(6.0).reshape(2, 3).t() + 1)
        assert parts.tolist() == [[0, 0, 0], [1, 1, 1]]
        assert given.tolist() == [1, 1] and whole.tolist() == [1, 2, 2, 4] and mixed == [2, 2]
        assert type(largest) is not tg.Tensor


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.ones(2).to(torch.float8_e5m2), r"a tensor of torch\.float8_e5m2"),
        (lambda: torch.ones(1).expand(3), r"use tensor\.clone\(\)"),
        (lambda: torch.ones(2, device="meta"), "a meta tensor"),
        (lambda: torch.eye(2).to_sparse(), "a sparse tensor"),
    ],
)
def test_tensors_that_cannot_be_filled_are_refused_by_name(run, make, words):
    for error in run(lambda group: collective.all_reduce(make(), group=group)):
        with pytest.raises(TypeError, match=f"tensor cannot take part in a collective: .*{words}"):
            raise error


def test_numbers_of_two_bytes(run):
    def body(group):
        mine = torch.tensor([[1.0, 3.0], [2.0, 5.0]], dtype=torch.bfloat16).t() * (group.index + 1)
        largest = mine.clone()
        collective.all_reduce(mine, collective.ReduceOp.AVG, group)
        collective.all_reduce(largest, collective.ReduceOp.MAX, group)
        return mine, largest

    for mean, largest in checked(run(body)):
        assert mean.dtype == torch.bfloat16 and mean.tolist() == [[1.5, 3], [4.5, 7.5]]
        assert largest.tolist() == [[2, 4], [6, 10]]


def test_arrays_that_do_not_change_are_refused(run):
    jax = pytest.importorskip("jax", reason="JAX is not in this environment; `make guests` makes one")
    for error in run(lambda group: collective.all_reduce(jax.numpy.ones(2), group=group)):
        with pytest.raises(TypeError, match="arrays of jax cannot be changed in place"):
            raise error


# -- data-parallel modules


def make_model():
    """Return a model that is the same each time, in whatever thread: PyTorch's random numbers are those of the process."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5, affine=False), torch.nn.Tanh()).double()
    numbers = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, generator=numbers)
    return model


def batch(rank):
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(rank), dtype=torch.float64)


def gradients(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


def mean_of_ranks(steps=1):
    found = []
    for rank in range(2):
        model = make_model()
        for _ in range(steps):
            model(batch(rank)).square().sum().backward()
        found.append(gradients(model))
    return [(a + b) / 2 for a, b in zip(*found)]


def test_gradients_become_their_mean(run):
    def body(group):
        model = make_model()
        if group.index:
            torch.nn.init.zeros_(model[0].weight)  # the first rank's values come
        parallel = DistributedDataParallel(model, process_group=group)
        assert isinstance(parallel, torch.nn.Module) and next(iter(parallel.state_dict())) == "module.0.weight"
        with parallel.no_sync():
            parallel(batch(group.index)).square().sum().backward()
        parallel(batch(group.index)).square().sum().backward()
        return gradients(model)

    for found in checked(run(body)):
        torch.testing.assert_close(found, mean_of_ranks(2), rtol=1e-12, atol=1e-12)


def test_a_context_gets_the_mean(run):
    def body(group):
        parallel = DistributedDataParallel(make_model(), process_group=group)
        with autograd_dist.context() as context:
            autograd_dist.backward(context, [parallel(batch(group.index)).square().sum()])
            found = autograd_dist.get_gradients(context)
        return [found[parameter] for parameter in parallel.module.parameters()]

    for found in checked(run(body)):
        torch.testing.assert_close(found, mean_of_ranks(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("by_all", [True, False])
def test_uneven_inputs_of_a_module_of_pytorch(run, by_all):
    """Rank 1 has two batches more than rank 0, which gives zeros meanwhile and gets the parameters of rank 1."""

    def body(group):
        parallel = DistributedDataParallel(make_model(), process_group=group)
        optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
        with parallel.join(divide_by_initial_world_size=by_all):
            for _ in range(1 + 2 * group.index):
                optimizer.zero_grad()
                parallel(batch(group.index)).square().sum().backward()
                optimizer.step()
        return [each.detach().clone() for each in parallel.parameters()]

    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for ranks in ((0, 1), (1,), (1,)):
        optimizer.zero_grad()
        whole = sum(model(batch(rank)).square().sum() for rank in ranks)
        (whole / (2 if by_all else len(ranks))).backward()
        optimizer.step()
    for found in checked(run(body)):
        torch.testing.assert_close(found, [*model.parameters()], rtol=1e-12, atol=1e-12)


class Marked(torch.autograd.Function):
    """Operation that notes when its backward runs."""

    @staticmethod
    def forward(ctx, x, noted):
        ctx.noted = noted
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        ctx.noted.append("marked")
        return gradient, None


class Marking(torch.nn.Module):
    def __init__(self, noted):
        super().__init__()
        self.noted = noted

    def forward(self, x):
        return Marked.apply(x, self.noted)


def test_buckets_leave_while_the_backward_goes_on(run):
    def body(group, dtype):
        noted = []
        model = make_model().to(dtype)
        x = batch(group.index).to(dtype)
        last = torch.nn.Linear(5, 5, bias=False, dtype=dtype)
        torch.nn.init.eye_(last.weight)
        whole = torch.nn.Sequential(model, Marking(noted), last)
        parallel = DistributedDataParallel(whole, process_group=group, bucket_cap_mb=1e-6, broadcast_buffers=False)

        def hook(state, bucket):
            noted.append(bucket.index())
            return all_reduce_hook(state, bucket)

        parallel.register_comm_hook(group, hook)
        (parallel(x).square().sum() + parallel(x).square().sum()).backward()  # each forward has buckets of its own
        return noted, gradients(model)

    for noted, found in checked(run(lambda group: body(group, torch.float64))):
        assert noted == [0, "marked", 1, 2] * 2
        torch.testing.assert_close(found, [2 * each for each in mean_of_ranks()], rtol=1e-12, atol=1e-12)
    for _, found in checked(run(lambda group: body(group, torch.bfloat16))):
        assert {each.dtype for each in found} == {torch.bfloat16}
        torch.testing.assert_close(
            [each.double() for each in found], [2 * each for each in mean_of_ranks()], rtol=0.1, atol=0.5
        )


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.never = (torch.nn.Linear(4, 1) for _ in range(3))

    def forward(self, x, left):
        return (self.left if left else self.right)(x)


def test_parameters_without_a_gradient(run):
    def body(group, unused):
        parallel = DistributedDataParallel(Branches(), process_group=group, find_unused_parameters=unused)
        parallel(torch.ones(2, 4), group.index == 0).sum().backward()
        return [None if each.grad is None else each.grad.sum().item() for each in parallel.parameters()]

    assert checked(run(lambda group: body(group, True))) == [[4, 1, 4, 1, None, None]] * 2
    for error in run(lambda group: body(group, False)):
        assert isinstance(error, Exception)
    with pytest.raises(AutogradError, match=r"no gradient came for '(left|right)\.weight'"):
        checked(run(lambda group: body(group, False)))


# -- pipelines


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_pipeline_of_modules_of_pytorch_learns_as_one_module(checkpoint):
    torch.manual_seed(1)
    parts = [torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh()).double(), torch.nn.Linear(5, 2).double()]
    x, y = batch(0), batch(1)[:, :2]
    whole = copy.deepcopy(torch.nn.Sequential(*parts))
    local = torch.optim.SGD(whole.parameters(), lr=0.1)
    with in_process_cluster("driver", "a", "b") as (driver, *_), driver.use():
        stages = [RemoteModule(name, copy.deepcopy, (part,)) for name, part in zip("ab", parts)]
        pipeline = Pipeline(stages, torch.nn.functional.mse_loss, n_microbatches=3, checkpoint=checkpoint)
        optimizer = pipeline.optimizer(torch.optim.SGD, lr=0.1)
        for _ in range(3):
            loss = pipeline.step(x, y)
            norm = optimizer.clip_grad_norm_(0.5)
            optimizer.step()

            wanted = torch.nn.functional.mse_loss(whole(x), y)
            local.zero_grad()
            wanted.backward()
            wanted_norm = torch.nn.utils.clip_grad_norm_(whole.parameters(), 0.5)
            local.step()
            np.testing.assert_allclose((loss.item(), norm.item()), (wanted.item(), wanted_norm.item()), rtol=1e-5)
        torch.testing.assert_close(pipeline(x), whole(x).detach(), rtol=1e-5, atol=1e-6)


# -- profiler


def test_the_profiler_sees_calls_and_parts_of_pytorch():
    with (
        in_process_cluster("a", "b") as (a, _),
        a.use(),
        profiler.profile() as profile,
        autograd_dist.context() as context,
    ):
        leaf = torch.ones(3, requires_grad=True)
        autograd_dist.backward(context, [rpc.rpc_sync("b", torch.sin, (leaf * 2,)).sum()])
    names = " ".join(event.name for event in profile.function_events)
    for name in (".sin(a -> b)#remote_call", "remote_op: PyTorch (SinBackward0)", "PyTorch (SumBackward0)"):
        assert name in names
