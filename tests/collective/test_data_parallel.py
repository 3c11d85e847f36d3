"""DistributedDataParallel gives every rank the gradients of the whole batch; ranks are agents in one process."""

import copy
import gc
import weakref

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import AutogradError, CollectiveError, CollectiveTimeoutError, WorkerLostError
from telegrad.nn.parallel import DistributedDataParallel, comm_hooks

pytestmark = pytest.mark.parametrize("ranks", [3], indirect=True)
ROWS = 4  # of the batch, on each rank


class Net(tg.nn.Module):
    """Layers of which some, and a buffer, can be left unused."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.spare = tg.nn.Linear(5, 7), tg.nn.Linear(7, 2), tg.nn.Linear(7, 2)
        self.norm = tg.nn.BatchNorm1d(7)
        self.double()

    def forward(self, x, spare=False):
        hidden = self.first(x).tanh()
        return self.second(hidden) + (self.spare(self.norm(hidden)) if spare else 0)


def whole_batch(size, seed=0):
    rows = np.random.default_rng(seed).standard_normal((size * ROWS, 5))
    return tg.tensor(rows), tg.tensor(np.sin(rows[:, :2]))


def own(tensor, index):
    return tensor[index * ROWS : (index + 1) * ROWS]


def loss_of(model, x, y, **options):
    return ((model(x, **options) - y) ** 2).mean()


def gradients(model):
    return [None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()]


def near(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def run(ranks, body, **options):
    """Call ``body(ddp, index)`` on each rank, with modules that begin alike, and return the results."""
    model = Net()
    groups = ranks.groups(seconds=options.pop("seconds", 10.0))
    arguments = {"find_unused_parameters": True, "broadcast_buffers": False, **options}

    def on_rank(group):
        return body(DistributedDataParallel(copy.deepcopy(model), process_group=group, **arguments), group.index)

    return model, ranks.run(groups, on_rank)


def checked(results):
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


@pytest.mark.parametrize("cap", [None, 1e-4, 3e-4])
def test_the_gradients_are_those_of_the_whole_batch(ranks, cap):
    x, y = whole_batch(3)

    def body(ddp, index):
        loss_of(ddp, own(x, index), own(y, index)).backward()
        return gradients(ddp)

    model, results = run(ranks, body, bucket_cap_mb=cap)
    loss_of(model, x, y).backward()
    for result in checked(results):
        near(result, gradients(model))


def test_parameters_that_some_ranks_use_get_the_mean_and_others_none(ranks):
    x, y = whole_batch(3)

    def body(ddp, index):
        loss_of(ddp, own(x, index), own(y, index), spare=index == 1).backward()
        return gradients(ddp.module.spare)

    model, results = run(ranks, body)
    loss_of(model, own(x, 1), own(y, 1), spare=True).backward()
    for result in checked(results):
        near(result, [grad / 3 for grad in gradients(model.spare)])


def test_a_parameter_without_a_gradient_is_an_error_that_names_it(ranks):
    x, y = whole_batch(3)
    _, results = run(
        ranks, lambda ddp, index: loss_of(ddp, own(x, index), own(y, index)).backward(), find_unused_parameters=False
    )
    for error in results:
        assert isinstance(error, AutogradError) and "'spare.weight', 'spare.bias', 'norm.weight'" in str(error)


@pytest.mark.parametrize("cap", [None, 1e-4])
def test_a_gradient_missing_on_one_rank_ends_the_backward_of_all(ranks, cap):
    x, y = whole_batch(3)

    def body(ddp, index):
        try:
            loss_of(ddp, own(x, index), own(y, index), spare=index != 1).backward()
        except (AutogradError, CollectiveError) as error:
            ddp.zero_grad()
            loss_of(ddp, own(x, index), own(y, index), spare=True).backward()
            return error, gradients(ddp)

    model, results = run(ranks, body, find_unused_parameters=False, bucket_cap_mb=cap)
    loss_of(model, own(x, 0), own(y, 0), spare=True).backward()
    for index, (error, after) in enumerate(checked(results)):
        assert isinstance(error, AutogradError if index == 1 else CollectiveError)
        assert "no gradient came for 'spare.weight'" in str(error)
        assert index == 1 or "rank 1 ('rank1') gave up" in str(error)
        near(after, results[0][1])  # they are in step


def test_gradients_add_up_without_messages_in_no_sync(ranks):
    steps = [whole_batch(3, seed) for seed in range(3)]

    def body(ddp, index):
        with ddp.no_sync():
            for x, y in steps[:2]:
                loss_of(ddp, own(x, index), own(y, index)).backward()
        alone = gradients(ddp)
        x, y = steps[2]
        loss_of(ddp, own(x, index), own(y, index)).backward()
        together = gradients(ddp)
        loss_of(ddp, own(x, index), own(y, index)).backward()
        return alone, together, gradients(ddp)

    model, results = run(ranks, body)
    for x, y in steps:
        loss_of(model, x, y).backward()
    once = gradients(model)
    loss_of(model, *steps[2]).backward()
    for index, (alone, together, further) in enumerate(checked(results)):
        near(together, once)
        near(further, gradients(model))
        fresh = copy.deepcopy(model)
        fresh.zero_grad()
        for x, y in steps[:2]:
            loss_of(fresh, own(x, index), own(y, index)).backward()
        near(alone, gradients(fresh))


def test_two_forwards_before_a_backward_and_two_backwards_after_one(ranks):
    (x, y), (u, v) = whole_batch(3), whole_batch(3, 1)

    def both(model, index=None):
        part = (lambda tensor: own(tensor, index)) if index is not None else lambda tensor: tensor
        (loss_of(model, part(x), part(y)) + loss_of(model, part(u), part(v))).backward()
        loss = loss_of(model, part(x), part(y))
        loss.backward(retain_graph=True)
        loss.backward()
        return gradients(model)

    model, results = run(ranks, both)
    expected = both(model)
    for result in checked(results):
        near(result, expected)


def test_uneven_inputs(ranks):
    """Rank r has r + 1 batches; a rank that has none left gives zeros."""
    x, y = whole_batch(3)

    def train(ddp, index, by_all):
        optimizer = tg.optim.SGD(ddp.parameters(), lr=0.1)
        with ddp.join(divide_by_initial_world_size=by_all):
            for _ in range(index + 1):
                optimizer.zero_grad()
                loss_of(ddp, own(x, index), own(y, index)).backward()
                optimizer.step()
        return [p.detach().numpy().copy() for p in ddp.parameters()]

    for by_all in (True, False):
        model, results = run(ranks, lambda ddp, index, by_all=by_all: train(ddp, index, by_all))
        optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            active = range(step, 3)
            losses = [loss_of(model, own(x, index), own(y, index)) for index in active]
            (sum(losses) / (3 if by_all else len(active))).backward()
            optimizer.step()
        for result in checked(results):
            near(result, [p.detach().numpy() for p in model.parameters()])


def test_an_early_end_can_be_an_error_everywhere(ranks):
    x, y = whole_batch(3)

    def body(ddp, index):
        with ddp.join(throw_on_early_termination=True):
            for _ in range(2 if index == 1 else 1):
                loss_of(ddp, own(x, index), own(y, index)).backward()

    for error in run(ranks, body)[1]:
        assert isinstance(error, CollectiveError) and "rank 0, 2 has no input left" in str(error)


def test_buffers_are_those_of_the_first_rank(ranks):
    x, _ = whole_batch(3)

    def body(ddp, index):
        ddp(own(x, index), spare=True)
        after = ddp.module.norm.running_mean.numpy().copy()
        ddp(own(x, index), spare=True)
        ddp.module.eval()
        ddp(own(x, index), spare=True)
        return after, ddp.module.norm.running_mean.numpy().copy()

    _, results = run(ranks, body, broadcast_buffers=True)
    (first, last), *others = checked(results)
    assert all(not np.array_equal(first, after) and np.array_equal(last, given) for after, given in others)


def test_the_first_rank_gives_the_parameters(ranks):
    model = Net()

    def body(group):
        mine = copy.deepcopy(model)
        with tg.no_grad():
            for tensor in (*mine.parameters(), *mine.buffers()):
                tensor += group.index
        return DistributedDataParallel(mine, process_group=group).module.state_dict()

    for state in checked(ranks.run(ranks.groups(), body)):
        for name, value in model.state_dict().items():
            assert np.array_equal(state[name].numpy(), value.numpy()), name


def test_different_modules_are_an_error_that_names_the_difference(ranks):
    def body(group):
        DistributedDataParallel(tg.nn.Linear(3, 2 + (group.index == 2)), process_group=group)

    for error in ranks.run(ranks.groups(), body):
        assert isinstance(error, CollectiveError)
        assert "rank 0 has 'weight: float32[2, 3]' where rank 2 has 'weight: float32[3, 3]'" in str(error)


@pytest.mark.parametrize(
    "module, options, error, words",
    [
        (tg.nn.Tanh(), {}, ValueError, "no parameter of the Tanh requires grad"),
        (tg.nn.LazyLinear(3), {}, ValueError, "'weight' has no shape yet"),
        (len, {}, TypeError, "module must be an nn.Module"),
        (tg.nn.Linear(1, 1), {"bucket_cap_mb": 0}, ValueError, "bucket_cap_mb must be"),
        (tg.nn.Linear(1, 1), {"device_ids": ["cuda:0"]}, ValueError, "cuda"),
    ],
)
def test_wrong_arguments(ranks, module, options, error, words):
    with pytest.raises(error, match=words):
        DistributedDataParallel(module, process_group=ranks.groups()[0], **options)


def test_a_parameter_that_comes_later_is_an_error(ranks):
    def body(ddp, index):
        ddp.module.later = tg.nn.Parameter(tg.ones(1))
        ddp(own(whole_batch(3)[0], index))

    for error in run(ranks, body)[1]:
        assert isinstance(error, ValueError) and "parameter 'later' was added" in str(error)


def test_a_rank_without_a_backward_is_named_and_one_that_is_lost_too(ranks):
    x, y = whole_batch(3)

    def body(ddp, index):
        if index != 1:
            loss_of(ddp, own(x, index), own(y, index)).backward()

    absent = run(ranks, body, seconds=0.5)[1]
    ranks.agents[1].close("it ends")
    groups = ranks.groups(name="after")

    def lost(group):
        ddp = DistributedDataParallel(Net(), process_group=group, init_sync=False, find_unused_parameters=True)
        body(ddp, group.index)

    for error in (absent[0], absent[2]):
        assert isinstance(error, CollectiveTimeoutError) and "rank 1 ('rank1')" in str(error)
    for error in ranks.run([groups[0], groups[2]], lost):
        assert isinstance(error, WorkerLostError) and error.worker == "rank1"


def test_a_backward_that_failed_does_not_disturb_the_next(ranks):
    x, y = whole_batch(3)

    def fail(_):
        raise ArithmeticError("as planned")

    def body(ddp, index):
        hidden = ddp.module.first(own(x, index))  # before the call, which diverts gradients
        failing = ddp(own(x, index)).sum() + hidden.sum()
        hidden.grad_fn.register_prehook(fail)
        with pytest.raises(ArithmeticError, match="as planned"):
            failing.backward()
        ddp.zero_grad()
        loss_of(ddp, own(x, index), own(y, index)).backward()
        return gradients(ddp)

    model, results = run(ranks, body, bucket_cap_mb=1e-4)
    loss_of(model, x, y).backward()
    for result in checked(results):
        near(result, gradients(model))


def test_a_module_that_is_dropped_is_freed(ranks):
    def body(ddp, index):
        module = ddp.module
        loss_of(ddp, *(own(each, index) for each in whole_batch(3))).backward()
        gone = weakref.ref(ddp._reducer)
        del ddp
        return module, gone

    results = checked(run(ranks, body)[1])
    gc.collect()
    for module, gone in results:
        assert gone() is None
        (module.first(tg.ones(2, 5).double()) ** 2).sum().backward()  # it can be used alone


@pytest.mark.parametrize(
    "hook, tolerance", [("fp16_compress_hook", 2e-3), ("bf16_compress_hook", 2e-2), ("wrapped", 2e-3)]
)
def test_hooks_that_compress_numbers(ranks, hook, tolerance):
    if hook.startswith("bf16"):
        pytest.importorskip("ml_dtypes")
    x, y = whole_batch(3)

    def body(ddp, index):
        wrapped = comm_hooks.fp16_compress_wrapper(comm_hooks.allreduce_hook)
        ddp.register_comm_hook(ddp.process_group, getattr(comm_hooks, hook, wrapped))
        loss_of(ddp, own(x, index), own(y, index)).backward()
        return gradients(ddp.module.second)

    model, results = run(ranks, body)
    loss_of(model, x, y).backward()
    for result in checked(results):
        for got, expected in zip(result, gradients(model.second), strict=True):
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_a_hook_gets_the_buckets_in_their_order(ranks):
    x, y = whole_batch(3)
    seen = {}

    def body(ddp, index):
        def hook(state, bucket):
            state.append((bucket.index(), bucket.is_last(), len(bucket.parameters()), len(bucket.gradients())))
            return comm_hooks.allreduce_hook(ddp.process_group, bucket)

        ddp.register_comm_hook(seen.setdefault(index, []), hook)
        loss_of(ddp, own(x, index), own(y, index), spare=True).backward()
        with pytest.raises(TypeError, match="hook must be a function"):
            ddp.register_comm_hook(None, "fp16")
        ddp.register_comm_hook(None, lambda state, bucket: tg.futures.collect_all([]))
        with pytest.raises(TypeError, match="must return a future of the tensor"):
            loss_of(ddp, own(x, index), own(y, index), spare=True).backward()

    checked(run(ranks, body, bucket_cap_mb=1e-4)[1])
    assert seen[0] == seen[1] == seen[2] and [number for number, *_ in seen[0]] == list(range(len(seen[0])))
    assert [last for _, last, *_ in seen[0]] == [False] * (len(seen[0]) - 1) + [True]
    assert sum(count for *_, count in seen[0]) == 8


def test_power_sgd_is_exact_for_gradients_of_low_rank(ranks):
    """One row a rank: a gradient of a weight has rank 1, and that of the mean at most 3."""
    model = tg.nn.Linear(20, 20, bias=True).double()
    x = tg.tensor(np.random.default_rng(1).standard_normal((3, 20)))

    def body(group):
        ddp = DistributedDataParallel(copy.deepcopy(model), process_group=group)
        state = comm_hooks.PowerSGDState(group, matrix_approximation_rank=3, start_powerSGD_iter=1)
        ddp.register_comm_hook(state, comm_hooks.powerSGD_hook)
        results = []
        for _ in range(2):
            ddp.zero_grad()
            (ddp(x[group.index : group.index + 1]) ** 2).mean().backward()
            results.append(gradients(ddp))
        return results, state.compression_stats()

    (model(x) ** 2).mean().backward()
    for results, (rate, of, sent) in checked(ranks.run(ranks.groups(), body)):
        for result in results:  # the first step is not compressed
            near(result, gradients(model))
        assert (of, sent) == (420, 20 + 2 * 60) and rate == 3


def test_power_sgd_learns_with_what_it_left_out(ranks):
    x, y = whole_batch(3)

    def body(ddp, index):
        ddp.register_comm_hook(
            comm_hooks.PowerSGDState(ddp.process_group, start_powerSGD_iter=2, min_compression_rate=1),
            comm_hooks.powerSGD_hook,
        )
        optimizer = tg.optim.SGD(ddp.parameters(), lr=0.2)
        for _ in range(60):
            optimizer.zero_grad()
            loss_of(ddp, own(x, index), own(y, index)).backward()
            optimizer.step()
        return loss_of(ddp.module, x, y).item(), [p.detach().numpy() for p in ddp.parameters()]

    model, results = run(ranks, body)
    losses = [loss for loss, _ in checked(results)]
    assert losses[0] < 0.35 * loss_of(model, x, y).item()
    for _, parameters in results[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(results[0][1], parameters, strict=True))
