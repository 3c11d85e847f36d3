"""``Join``: ranks with fewer inputs than others take part until all have none left."""

import copy

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import CollectiveError
from telegrad.collective import Join, Joinable, JoinHook
from telegrad.collective.optim import ZeroRedundancyOptimizer
from telegrad.nn.parallel import DistributedDataParallel

pytestmark = pytest.mark.parametrize("ranks", [3], indirect=True)
MODEL = tg.nn.Sequential(tg.nn.Linear(4, 6), tg.nn.Tanh(), tg.nn.Linear(6, 2)).double()
STEPS = [2, 5, 3]  # of each rank


def batch(index, step):
    return tg.tensor(np.random.default_rng([index, step]).standard_normal((3, 4)))


def values(model):
    return [parameter.detach().numpy().copy() for parameter in model.parameters()]


def checked(results):
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


@pytest.mark.parametrize("by_all", [True, False])
def test_a_module_and_an_optimizer_whose_state_is_spread(ranks, by_all):
    def body(group):
        model = DistributedDataParallel(copy.deepcopy(MODEL), process_group=group)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), tg.optim.Adam, group, lr=0.05)
        with Join([model, optimizer], divide_by_initial_world_size=by_all):
            for step in range(STEPS[group.index]):
                optimizer.zero_grad()
                (model(batch(group.index, step)) ** 2).mean().backward()
                optimizer.step()
        return values(model)

    model = copy.deepcopy(MODEL)
    optimizer = tg.optim.Adam(model.parameters(), lr=0.05)
    for step in range(max(STEPS)):
        active = [index for index, steps in enumerate(STEPS) if step < steps]
        optimizer.zero_grad()
        losses = [(model(batch(index, step)) ** 2).mean() for index in active]
        (sum(losses) / (3 if by_all else len(active))).backward()
        optimizer.step()
    for result in checked(ranks.run(ranks.groups(), body)):
        for got, expected in zip(result, values(model), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


class Total(Joinable, JoinHook):
    """Sum over the ranks at each step: what a user of ``Join`` writes."""

    def __init__(self, group):
        self.group, self.sums, self.ended = group, [], None

    def add(self, number):
        Join.notify_join_context(self)
        self.sums.append(sum(self.group.all_gather(self.group.begin("add", None), number)))

    def join_hook(self, **kwargs):
        assert kwargs == {"colour": "blue"}
        return self

    @property
    def join_process_group(self):
        return self.group

    def main_hook(self):
        self.sums.append(sum(self.group.all_gather(self.group.begin("add", None), 0)))

    def post_hook(self, is_last_joiner):
        self.ended = is_last_joiner


def test_an_object_of_a_user(ranks):
    def body(group):
        total, second = Total(group), Total(group)
        with Join([total, second], colour="blue"):
            for _ in range(STEPS[group.index]):
                total.add(group.index + 1)
                second.add(10)
        assert total._join is None and total.join_device == tg.device("cpu")
        return total.sums, second.sums, total.ended

    for index, (first, second, last) in enumerate(checked(ranks.run(ranks.groups(), body))):
        assert first == [6, 6, 5, 2, 2] and second == [30, 30, 20, 10, 10]
        assert last == (index == 1)


def test_an_early_end_is_an_error_everywhere_and_leaves_the_block(ranks):
    def body(group):
        total = Total(group)
        block = Join([total], throw_on_early_termination=True, colour="blue")
        with pytest.raises(CollectiveError, match="rank 0, 2 has no input left"), block:
            for _ in range(1 + (group.index == 1)):
                total.add(1)
        assert total._join is None
        with Join([total], enable=False, colour="blue"):
            total.add(1)
        return total.sums

    assert checked(ranks.run(ranks.groups(), body)) == [[3, 3]] * 3


def test_joinables_of_one_group_are_needed(ranks):
    (first, *_), (second, *_) = ranks.groups(), ranks.groups(name="other")
    with pytest.raises(ValueError, match="joinables is empty"):
        Join([])
    with pytest.raises(ValueError, match="of one process group"):
        Join([Total(first), Total(second)], colour="blue")
