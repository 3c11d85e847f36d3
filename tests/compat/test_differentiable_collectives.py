"""Collectives through which gradients flow: the backward of each is its adjoint, in a group of agents in threads."""

import threading

import numpy as np
import pytest
import telegrad as tg
from telegrad.collective.extend import AgentGroup, serve_groups
from telegrad.compat.torch.distributed.nn import functional as F
from telegrad.testing import in_process_cluster

SIZE = 3
LIST = "list of a tensor for each member"


def split_single(x, group):
    sizes = [1, 2, 1]  # what each member gives to member 0, 1, 2
    mine = sizes[group.index]
    return F.all_to_all_single(tg.zeros(SIZE * mine, 2), x, [mine] * SIZE, sizes, group)


# Of each collective: the function of an input and a group, and the number of rows, or the list, that it takes.
CASES = {
    "all_reduce": (lambda x, group: F.all_reduce(x, group=group), 2),
    "broadcast": (lambda x, group: F.broadcast(x, 1, group), 2),
    "reduce": (lambda x, group: F.reduce(x, 2, group=group), 2),
    "gather": (lambda x, group: F.gather(x, 1, group), 2),
    "all_gather": (lambda x, group: F.all_gather(x, group), 2),
    "scatter": (lambda x, group: F.scatter(x, 2, group), LIST),
    "reduce_scatter": (lambda x, group: F.reduce_scatter(tg.zeros(2, 2), x, group=group), LIST),
    "all_to_all": (lambda x, group: F.all_to_all([tg.zeros(2, 2) for _ in x], x, group), LIST),
    "all_to_all_single": (lambda x, group: F.all_to_all_single(tg.zeros(SIZE, 2), x, group=group), SIZE),
    "all_to_all_single, split": (split_single, 4),
}


@pytest.fixture(scope="module")
def agents():
    with in_process_cluster(*(f"rank{rank}" for rank in range(SIZE))) as agents:
        for agent in agents:
            serve_groups(agent)
        yield agents


def everywhere(agents, name, function):
    """Return what ``function(group)`` returns for each member."""
    results = [None] * SIZE

    def run(rank):
        results[rank] = function(AgentGroup(agents[rank], name, range(SIZE), 60.0))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def inputs(rank, rows):
    rng = np.random.default_rng(rank)
    count, rows = (SIZE, 2) if rows == LIST else (1, rows)
    return [tg.tensor(rng.standard_normal((rows, 2)).astype(np.float32), requires_grad=True) for _ in range(count)]


def as_list(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("case", CASES)
def test_the_backward_is_the_adjoint(agents, case):
    """The sum over members of <y, f(x)> equals that of <f'(y), x>."""
    function, rows = CASES[case]

    def run(group):
        given = inputs(group.index, rows)
        before = [each.tolist() for each in given]
        results = as_list(function(given if rows == LIST else given[0], group))
        rng = np.random.default_rng(100 + group.index)
        weights = [tg.tensor(rng.standard_normal(each.shape).astype(np.float32)) for each in results]
        loss = sum((result * weight).sum() for result, weight in zip(results, weights, strict=True))
        loss.backward()
        assert [each.tolist() for each in given] == before
        return loss.item(), sum((each * each.grad).sum().item() for each in given), results

    found = everywhere(agents, case, run)
    assert sum(loss for loss, _, _ in found) == pytest.approx(sum(back for _, back, _ in found), abs=1e-4)
    assert any(abs(loss) > 1e-3 for loss, _, _ in found)


def test_values(agents):
    def run(group):
        x = tg.full((2,), float(group.index + 1))
        return [
            F.all_reduce(x, group=group).tolist(),
            F.all_reduce(x, tg.collective.ReduceOp.MAX, group).tolist(),
            F.reduce(x, 1, group=group).tolist(),
            F.broadcast(x, 2, group).tolist(),
            [each.tolist() for each in F.gather(x, 1, group)],
        ]

    zeros, all_of_them = [[0.0, 0.0]] * 3, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    for rank, (total, most, at_one, of_two, gathered) in enumerate(everywhere(agents, "values", run)):
        assert (total, most, of_two) == ([6.0, 6.0], [3.0, 3.0], [3.0, 3.0])
        assert at_one == ([6.0, 6.0] if rank == 1 else [0.0, 0.0])
        assert gathered == (all_of_them if rank == 1 else zeros)


def test_a_second_derivative(agents):
    def run(group):
        x = tg.tensor([2.0, 3.0], requires_grad=True)
        (first,) = tg.autograd.grad((F.all_reduce(x, group=group) ** 2).sum(), x, create_graph=True)
        first.sum().backward()
        return x.grad.tolist()

    # Three members, each with the loss (x1 + x2 + x3)^2: the gradient is 6 (x1 + x2 + x3), all of whose sums depend on x.
    assert everywhere(agents, "second", run) == [[18.0, 18.0]] * SIZE
