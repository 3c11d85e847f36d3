"""Optimizers over ranks: the same parameters as one process gets, with the state spread or the models averaged."""

import copy

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import AutogradError, CollectiveError
from telegrad.collective.optim import (
    HierarchicalModelAverager,
    PeriodicModelAverager,
    PostLocalSGDOptimizer,
    ZeroRedundancyOptimizer,
    average_parameters,
    clip_grad_norm_,
)
from telegrad.nn.parallel import DistributedDataParallel, comm_hooks

pytestmark = pytest.mark.parametrize("ranks", [3], indirect=True)


MODEL = tg.nn.Sequential(tg.nn.Linear(4, 6).double(), tg.nn.Linear(6, 3).double(), tg.nn.Linear(3, 1))


def net():
    """A model with the same numbers each time."""
    return copy.deepcopy(MODEL)


def give_gradients(model, seed):
    random = np.random.default_rng(seed)
    for parameter in model.parameters():
        parameter.grad = tg.tensor(random.standard_normal(parameter.shape)).to(parameter.dtype)


def values(model):
    return [parameter.detach().numpy().copy() for parameter in model.parameters()]


def equal(some, others):
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


def checked(results):
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


@pytest.mark.parametrize("kind, options", [("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {"lr": 0.01})])
def test_sharded_state_gives_the_same_parameters(ranks, kind, options):
    def groups_of(model):
        first, *others = model.children()
        return [{"params": first.parameters(), "lr": 0.05}, {"params": [p for o in others for p in o.parameters()]}]

    def train(model, optimizer):
        schedule = tg.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for step in range(5):
            give_gradients(model, step)
            optimizer.step()
            schedule.step()
        return values(model)

    alone = net()
    plain = getattr(tg.optim, kind)(groups_of(alone), **options)
    expected = train(alone, plain)

    def body(group):
        model = net()
        optimizer = ZeroRedundancyOptimizer(groups_of(model), getattr(tg.optim, kind), group, **options)
        got = train(model, optimizer)
        with pytest.raises(CollectiveError, match="consolidate_state_dict"):
            optimizer.state_dict()
        optimizer.consolidate_state_dict(to=1)
        state = optimizer.state_dict() if group.index == 1 else None
        elements = sum(p.numel() for p in optimizer.optim.state)
        states = group.all_gather(group.begin("states", None), state)
        again = ZeroRedundancyOptimizer(groups_of(model), getattr(tg.optim, kind), group, **options)
        again.load_state_dict(states[1])
        give_gradients(model, 9)
        again.step()
        return got, state, elements, values(model)

    results = checked(ranks.run(ranks.groups(), body))
    give_gradients(alone, 9)
    state = plain.state_dict()
    plain.step()
    assert all(equal(got, expected) and equal(later, values(alone)) for got, _, _, later in results)
    assert [elements for *_, elements, _ in results] == [24, 13, 18]  # the largest parameter has 24
    assert results[1][1]["param_groups"] == state["param_groups"]
    assert results[1][1]["state"].keys() == state["state"].keys()


def test_closures_and_groups_that_come_later(ranks):
    def body(group):
        first, second = tg.nn.Linear(2, 2), tg.nn.Linear(2, 1)
        with tg.no_grad():
            for parameter in (*first.parameters(), *second.parameters()):
                parameter.fill_(1.0)
        optimizer = ZeroRedundancyOptimizer(first.parameters(), tg.optim.SGD, group, lr=0.1)
        optimizer.add_param_group({"params": second.parameters(), "lr": 0.2})

        def closure():
            optimizer.zero_grad()
            loss = second(first(tg.ones(1, 2))).sum()
            loss.backward()
            return loss

        assert optimizer.step(closure).item() == 7.0
        return values(first) + values(second)

    results = checked(ranks.run(ranks.groups(), body))
    expected = [np.full((2, 2), 0.9), np.full(2, 0.9), np.full((1, 2), 0.4), np.full(1, 0.8)]
    for result in results:
        for got, value in zip(result, expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-6)


def test_models_are_averaged_every_so_many_steps(ranks):
    def body(group):
        model = net()
        optimizer = PostLocalSGDOptimizer(
            tg.optim.SGD(model.parameters(), lr=0.1), PeriodicModelAverager(3, warmup_steps=1, process_group=group)
        )
        seen = []
        for step in range(6):
            give_gradients(model, 10 * step + group.index)
            optimizer.step()
            seen.append(values(model))
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
        assert state["step"] == optimizer.averager.step == 6
        return seen

    results = checked(ranks.run(ranks.groups(), body))
    for step in range(6):
        together = all(equal(results[0][step], other[step]) for other in results[1:])
        assert together == (step in (1, 4)), step


def test_averages_are_means(ranks):
    def body(group):
        some = [tg.full((2,), float(group.index)), tg.full((3,), 2.0 * group.index, dtype=tg.float64)]
        average_parameters(some, group)
        return [each.tolist() for each in some]

    assert checked(ranks.run(ranks.groups(), body)) == [[[1.0] * 2, [2.0] * 3]] * 3


def test_hooks_of_local_sgd_stop_taking_means(ranks):
    def body(group):
        ddp = DistributedDataParallel(tg.nn.Linear(2, 1), process_group=group)
        state = comm_hooks.PostLocalSGDState(group, None, start_localSGD_iter=2)
        ddp.register_comm_hook(state, comm_hooks.post_localSGD_hook)
        seen = []
        for _ in range(3):
            ddp.zero_grad()
            ddp(tg.full((1, 2), float(group.index))).sum().backward()
            seen.append(ddp.module.weight.grad.tolist()[0][0])
        return seen

    assert checked(ranks.run(ranks.groups(), body)) == [[1.0, 1.0, float(rank)] for rank in range(3)]


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_clipping_by_the_norm_of_all_ranks(ranks, order):
    models = [net() for _ in range(3)]
    for index, model in enumerate(models):
        give_gradients(model, index)
    together = [p for model in copy.deepcopy(models) for p in model.parameters()]
    for parameter, other in zip(together, (p for model in models for p in model.parameters()), strict=True):
        parameter.grad = other.grad.clone()
    expected = tg.nn.utils.clip_grad_norm_(together, 1.5, order).item()

    def body(group):
        return clip_grad_norm_(models[group.index].parameters(), 1.5, order, group=group).item()

    assert checked(ranks.run(ranks.groups(), body)) == pytest.approx([expected] * 3, rel=1e-6)
    got = [p.grad.numpy() for model in models for p in model.parameters()]
    for mine, parameter in zip(got, together, strict=True):
        np.testing.assert_allclose(mine, parameter.grad.numpy(), rtol=1e-5)


def test_a_norm_that_is_no_number_is_an_error_everywhere(ranks):
    def body(group):
        weight = tg.ones(2, requires_grad=True)
        weight.grad = tg.full((2,), float("nan") if group.index == 1 else 1.0)
        clip_grad_norm_([weight], 1.0, error_if_nonfinite=True, group=group)

    assert all(isinstance(error, AutogradError) for error in ranks.run(ranks.groups(), body))


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda group: ZeroRedundancyOptimizer([], tg.optim.SGD, group), ValueError, "params is empty"),
        (lambda group: ZeroRedundancyOptimizer(net().parameters(), tg.optim.SGD, group, lr=-1), ValueError, "lr"),
        (
            lambda group: ZeroRedundancyOptimizer(net().parameters(), tg.optim.SGD, group, overlap_with_ddp=True),
            ValueError,
            "overlap_with_ddp",
        ),
        (lambda group: PostLocalSGDOptimizer(net(), None), TypeError, "optim must be an Optimizer"),
        (lambda group: PeriodicModelAverager(0), ValueError, "period is at least 1"),
        (lambda group: HierarchicalModelAverager({2: 2, 3: 3}, 0, group), ValueError, "must be multiples of period 2"),
        (lambda group: HierarchicalModelAverager({2: 2}, 0, group), ValueError, "must have all 3 ranks"),
        (lambda group: clip_grad_norm_([], 1.0, 0, group=group), ValueError, "norm_type must be above 0"),
    ],
)
def test_wrong_arguments(ranks, make, error, words):
    with pytest.raises(error, match=words):
        make(ranks.groups()[0])
