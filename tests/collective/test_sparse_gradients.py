"""DistributedDataParallel gives every rank the mean of sparse gradients; ranks are agents in one process."""

import copy

import numpy as np
import pytest
import telegrad as tg
from telegrad.nn.parallel import DistributedDataParallel, comm_hooks

pytestmark = pytest.mark.parametrize("ranks", [3], indirect=True)
ROWS = [[1, 2, 2, 5], [2], []]  # that each rank looks up


class Words(tg.nn.Module):
    """A table of word vectors, a bag of others, and a dense layer."""

    def __init__(self):
        super().__init__()
        self.table = tg.nn.Embedding(6, 3, sparse=True)
        self.bag = tg.nn.EmbeddingBag(6, 3, mode="sum", sparse=True)
        self.last = tg.nn.Linear(3, 1)
        self.double()

    def forward(self, rows, bag=True):
        rows = tg.tensor(rows, dtype=tg.int64)
        total = self.table(rows).sum(0)
        return self.last(total + self.bag(rows.reshape(1, -1))[0] if bag else total) ** 2


def run(ranks, body, module=None, **options):
    """Call ``body(ddp, index)`` on each rank, with modules that begin alike; return the module and the results."""
    module = Words() if module is None else module

    def on_rank(group):
        return body(DistributedDataParallel(copy.deepcopy(module), process_group=group, **options), group.index)

    results = ranks.run(ranks.groups(), on_rank)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return module, results


def gradients(model):
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def alone(module, lookups, **options):
    """Return the mean of the gradients of several calls, each one as often as it is given."""
    module = copy.deepcopy(module)
    for rows in lookups:
        module(rows, **options).sum().backward()
    return [None if grad is None else dense(grad) / len(ROWS) for grad in gradients(module)]


def dense(tensor):
    return (tensor.to_dense() if tensor.is_sparse else tensor).numpy()


def check(results, expected, sparse=2):
    """Check that all ranks have the expected gradients, equal to the bit, the first of them sparse."""
    for result in results:
        assert [grad is not None and grad.is_sparse for grad in result] == [i < sparse for i in range(len(result))]
        for grad, value, first in zip(result, expected, results[0], strict=True):
            if value is None:
                assert grad is None
                continue
            np.testing.assert_allclose(dense(grad), value, rtol=1e-12, atol=1e-13)
            assert np.array_equal(dense(grad), dense(first))
            if grad.is_sparse:
                assert grad.is_coalesced() and np.array_equal(grad.indices().numpy(), first.indices().numpy())


@pytest.mark.parametrize("cap", [None, 1e-5])
def test_ranks_look_up_different_numbers_of_rows(ranks, cap):
    def body(ddp, index):
        ddp(ROWS[index]).backward()
        return gradients(ddp)

    module, results = run(ranks, body, bucket_cap_mb=cap)
    check(results, alone(module, ROWS))
    assert results[0][0].indices().tolist() == [[1, 2, 5]]


def test_no_rank_looks_up_a_row(ranks):
    def body(ddp, index):
        ddp([]).backward()
        return gradients(ddp)

    module, results = run(ranks, body)
    check(results, alone(module, [[], [], []]))
    assert results[0][0].indices().tolist() == [[]] and results[0][0].shape == (6, 3)


def test_gradients_add_up_in_no_sync_and_over_backwards(ranks):
    def body(ddp, index):
        with ddp.no_sync():
            ddp(ROWS[index]).backward()
            kept = dense(ddp.module.table.weight.grad)
        ddp(ROWS[index - 1]).backward()
        together = gradients(ddp)
        ddp(ROWS[index]).backward()
        return kept, together, gradients(ddp)

    module, results = run(ranks, body)
    for index, (kept, *_) in enumerate(results):
        np.testing.assert_allclose(kept, alone(module, [ROWS[index]])[0] * 3, rtol=1e-12)
    check([together for _, together, _ in results], alone(module, ROWS * 2))
    for (*_, further), expected in zip(results, [alone(module, ROWS * 3)] * 3, strict=True):
        for grad, value in zip(further, expected, strict=True):
            np.testing.assert_allclose(dense(grad), value, rtol=1e-12)


def test_a_table_that_some_ranks_use_gets_the_mean_and_one_that_none_uses_none(ranks):
    def body(ddp, index):
        ddp(ROWS[index], bag=index == 0).backward()
        some = gradients(ddp)
        ddp.zero_grad()
        ddp(ROWS[index], bag=False).backward()
        return some, ddp.module.bag.weight.grad

    module, results = run(ranks, body, find_unused_parameters=True)
    expected = alone(module, ROWS[1:], bag=False)
    for place, part in enumerate(alone(module, ROWS[:1])):
        expected[place] = part if expected[place] is None else expected[place] + part
    check([some for some, _ in results], expected)
    assert [none for _, none in results] == [None, None, None]


def test_a_rank_whose_inputs_end_early_gives_no_rows(ranks):
    def body(ddp, index):
        with ddp.join(divide_by_initial_world_size=False):
            for _ in range(2 if index == 0 else 1):
                ddp.zero_grad()
                ddp(ROWS[index]).backward()
        return gradients(ddp)

    module, results = run(ranks, body)
    check(results[:1], [value * 3 for value in alone(module, ROWS[:1])])


def test_the_optimizers_of_all_ranks_take_the_same_steps(ranks):
    def body(ddp, index):
        tables = [ddp.module.table.weight, ddp.module.bag.weight]
        optimizer = tg.optim.SparseAdam(tables, lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            ddp(ROWS[index - step]).backward()
            optimizer.step()
        return [table.detach().numpy() for table in tables]

    _, results = run(ranks, body)
    for result in results[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(result, results[0], strict=True))


def test_a_table_that_is_also_a_layers_weight_gets_a_dense_mean(ranks):
    class Tied(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = tg.nn.Embedding(6, 3, sparse=True)
            self.double()

        def forward(self, rows):
            found = self.table(tg.tensor(rows, dtype=tg.int64)).sum(0)
            return (self.table.weight @ found if len(rows) > 1 else found).sum() ** 2  # dense on the first rank alone

    def body(ddp, index):
        ddp(ROWS[index]).backward()
        return gradients(ddp)

    module, results = run(ranks, body, Tied())
    check(results, alone(module, ROWS), sparse=0)


def test_hooks_do_not_get_sparse_gradients(ranks):
    seen = []

    def hook(state, bucket):
        seen.append((len(bucket.parameters()), bucket.is_last()))
        return comm_hooks.allreduce_hook(state, bucket)

    def body(ddp, index):
        ddp.register_comm_hook(ddp.process_group, hook)
        ddp(ROWS[index]).backward()
        return gradients(ddp)

    module, results = run(ranks, body)
    check(results, alone(module, ROWS))
    assert seen == [(2, True)] * 3


def test_a_sparse_gradient_of_another_parameter_is_an_error_that_names_it(ranks):
    class Plain(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = tg.nn.Parameter(tg.ones(5, 2))

        def forward(self, rows):
            return tg.nn.functional.embedding(rows, self.weight, sparse=True).sum()

    def body(ddp, index):
        with pytest.raises(TypeError, match="'weight' got a sparse gradient"):
            ddp(tg.tensor([1, 2])).backward()

    run(ranks, body, Plain())
