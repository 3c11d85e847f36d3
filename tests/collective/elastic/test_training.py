"""Elastic training by agents in one process: joins, leaves and deaths, against one worker that trains alone."""

import threading

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.base.errors import CollectiveError, CollectiveTimeoutError
from telegrad.collective import ElasticTraining
from telegrad.collective.elastic import members
from telegrad.collective.elastic.members import ElasticMembers
from telegrad.collective.optim import ZeroRedundancyOptimizer
from telegrad.data import ElasticSampler
from telegrad.testing.cluster import in_process_cluster

SAMPLES, STEPS = 48, 12
SECONDS = 60.0
X = np.random.default_rng(1).normal(size=(SAMPLES, 6))
Y = np.sin(X).sum(1, keepdims=True)


class Worker:
    """A worker that trains in a thread; ``at`` maps a step to what it does before its part of that step."""

    def __init__(self, agent, at=None, wide=8, seed=0, batch_size=16, norm=False, **options):
        self.agent, self.at = agent, at or {}
        self.losses, self.used, self.sizes, self.repeated = {}, [], [], 0
        self.error = None
        tg.manual_seed(seed)
        self.model = nn.Sequential(
            nn.Linear(6, wide), nn.BatchNorm1d(wide) if norm else nn.Identity(), nn.Tanh(), nn.Linear(wide, 1)
        ).double()
        self.optimizer = tg.optim.Adam(self.model.parameters(), lr=0.01)
        self.options = {"timeout": SECONDS, **options}
        self.batch_size = batch_size
        self.thread = threading.Thread(target=self.run)

    def start(self):
        self.thread.start()
        return self

    def run(self):
        try:
            with self.agent.use():
                self.train()
        except Exception as error:
            self.error = error

    def train(self):
        per_worker = self.options.pop("per_worker", False)
        sampler = ElasticSampler(X, self.batch_size, per_worker=per_worker)
        self.training = ElasticTraining(self.model, self.optimizer, sampler, **self.options)
        for indices in self.training.steps(STEPS):
            step = self.training.completed
            self.at.pop(step, lambda: None)()
            loss = nn.functional.mse_loss(self.model(tg.from_numpy(X[indices])), tg.from_numpy(Y[indices]))
            size = self.training.size
            if self.training.step(loss):
                self.losses[step] = self.training.loss
                self.used.append((step, indices))
                self.sizes.append(size)
            elif step == self.training.completed and self.training._pieces is None:
                self.repeated += 1

    def weights(self):
        return [value.numpy().copy() for value in self.model.state_dict().values()]


def alone(**options):
    with in_process_cluster("alone") as (agent,):
        worker = Worker(agent, **options)
        worker.run()
    assert worker.error is None
    return worker


def finish(*workers):
    for worker in workers:
        worker.thread.join(SECONDS)
        assert not worker.thread.is_alive()
        if worker.error is not None:
            raise worker.error


def same(one, other, exact):
    for a, b in zip(one.weights(), other.weights(), strict=True):
        np.testing.assert_array_equal(a, b) if exact else np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(members, "BEGIN_SECONDS", 0.02)  # most agents of these tests do not train


@pytest.fixture
def agents():
    with in_process_cluster(*(f"worker{number}" for number in range(6))) as found:
        yield found


@pytest.mark.parametrize("pieces", [None, 8])
def test_workers_that_come_and_leave_take_the_steps_of_one_alone(agents, pieces):
    options = {"pieces": pieces, "norm": pieces is not None, "min_workers": 2}
    late = [Worker(agent, seed=9, **options) for agent in agents[3:5]]
    first = Worker(agents[0], {4: lambda: [each.start() for each in late]}, **options)
    leaver = Worker(agents[1], **options)
    leaver.at[8] = lambda: leaver.training.leave()
    workers = [first, leaver, *late]
    first.start()
    leaver.start()
    finish(first, leaver)
    finish(*late)
    reference = alone(pieces=pieces, norm=pieces is not None)
    for worker in [first, *late]:
        same(worker, reference, exact=pieces is not None)
        assert worker.repeated == 0
        same(worker, first, exact=True)
    assert max(first.sizes) >= 3 and len(first.sizes) == STEPS
    assert len(leaver.sizes) <= 9
    assert all(worker.training.workers == [] for worker in workers)


@pytest.mark.parametrize("copies", [1, 2])
def test_the_optimizers_parts_move_when_workers_come_and_leave(agents, copies):
    options = {"pieces": 8, "min_workers": 2, "state_copies": copies}
    late = [Worker(agent, seed=9, **options) for agent in agents[4:6]]
    first = Worker(agents[0], {3: lambda: [each.start() for each in late]}, **options)
    leavers = [Worker(agent, **options) for agent in agents[1:4]]
    for each in leavers:
        each.at[7] = each.at[8] = lambda each=each: each.training.leave()
    for each in (first, *leavers):
        each.start()
    finish(first, *leavers, *late)
    reference = alone(pieces=8)
    for worker in [first, *late]:
        same(worker, reference, exact=True)
    held = [len(each.optimizer.state) for each in (first, *late)]
    assert sum(held) == copies * 4 and max(held) < 4, "each has a part of the state"
    assert max(first.sizes) >= 4


@pytest.mark.parametrize("copies", [1, 2])
def test_the_optimizers_state_is_lost_with_all_that_had_a_part(agents, copies):
    victim = Worker(agents[0], min_workers=3, state_copies=copies)
    victim.at[5] = lambda: victim.agent.close("it was killed")
    others = [Worker(agent, min_workers=2, state_copies=copies) for agent in agents[1:3]]
    for worker in (victim, *others):
        worker.start()
    for worker in (victim, *others):
        worker.thread.join(SECONDS)
    reference = alone()
    for worker in others:
        if copies == 1:
            assert "all workers that had the optimizer's state of 1 of 4 parameters are lost" in str(worker.error)
        else:
            assert worker.error is None and worker.repeated <= 1
            same(worker, reference, exact=False)


def test_a_zero_redundancy_optimizer_is_refused(agents):
    optimizer = object.__new__(ZeroRedundancyOptimizer)
    with agents[0].use(), pytest.raises(TypeError, match="give ElasticTraining the optimizer of all parameters"):
        ElasticTraining(nn.Linear(1, 1), optimizer, ElasticSampler(X, 16))


def test_a_lost_worker_costs_the_others_one_step_at_most(agents):
    victim = Worker(agents[0], min_workers=3)
    victim.at[5] = lambda: victim.agent.close("it was killed")
    others = [Worker(agent, min_workers=2) for agent in agents[1:3]]
    for worker in (victim, *others):
        worker.start()
    finish(*others)
    victim.thread.join()
    assert victim.error is not None
    reference = alone()
    for worker in others:
        assert worker.repeated <= 1 and sorted(worker.losses) == list(range(STEPS))
        same(worker, reference, exact=False)
        same(worker, others[0], exact=True)


def joins_at(first, step, newcomer):
    first.at[step] = newcomer.start


@pytest.mark.parametrize("dying", ["source", "newcomer"])
def test_a_death_while_the_state_travels(agents, dying, monkeypatch):
    """The newcomer gets it from another source, or the others go on without it."""
    dies = agents[0] if dying == "source" else agents[2]
    newcomer = Worker(agents[2], seed=9)
    second = Worker(agents[1], {4: newcomer.start}, min_workers=2)
    first = Worker(agents[0], min_workers=2)
    method = "state_wanted" if dying == "source" else "fetch"
    plain = getattr(ElasticMembers, method)

    def travel(self, *arguments):
        if self._agent is dies and newcomer.thread.ident is not None:
            dies.close("it was killed")
        return plain(self, *arguments)

    monkeypatch.setattr(ElasticMembers, method, travel)
    first.start()
    second.start()
    finish(second)
    newcomer.thread.join()
    first.thread.join()
    assert (first.error if dying == "source" else newcomer.error) is not None
    same(second, alone(), exact=False)
    if dying == "source":
        assert newcomer.error is None
        same(newcomer, second, exact=True)
    assert second.repeated <= 2


def test_a_newcomer_with_other_settings_gets_an_error_and_the_others_go_on(agents):
    newcomer = Worker(agents[2], wide=9)
    first = Worker(agents[0], {2: newcomer.start, 4: lambda: newcomer.thread.join()}, min_workers=2)
    second = Worker(agents[1], min_workers=2)
    first.start()
    second.start()
    finish(first, second)
    assert isinstance(newcomer.error, ValueError)
    assert "this worker joins a training with parameters" in str(newcomer.error)


def test_too_few_workers_are_an_error_that_names_them(agents):
    only = Worker(agents[0], min_workers=2, timeout=0.3)
    only.start().thread.join()
    assert isinstance(only.error, CollectiveTimeoutError)
    assert "at least 2 workers must take part" in str(only.error) and "'worker0', 'worker1'" in str(only.error)


def test_a_worker_that_breaks_out_of_its_loop_leaves(agents):
    def train(worker):
        with worker.agent.use():
            sampler = ElasticSampler(X, 16)
            training = ElasticTraining(worker.model, worker.optimizer, sampler, timeout=SECONDS)
            for _ in training.steps(STEPS):
                break

    breaker, other = Worker(agents[0]), Worker(agents[1], min_workers=1)
    breaker.train = lambda: train(breaker)
    breaker.start()
    other.start()
    finish(breaker, other)
    assert sorted(other.losses) == list(range(STEPS)) and other.sizes[-1] == 1


def test_a_worker_that_comes_after_the_end_gets_the_final_state(agents):
    first, late = Worker(agents[0], norm=True), Worker(agents[1], norm=True, seed=9)
    finish(first.start())
    finish(late.start())
    assert late.losses == {} and late.training.completed == STEPS
    same(late, first, exact=True)
    assert late.training._sampler.state_dict() == first.training._sampler.state_dict()


def test_a_final_state_that_the_program_has_changed_is_an_error_for_those_that_come_late(agents):
    first, late = Worker(agents[0]), Worker(agents[1])
    finish(first.start())
    with tg.no_grad():
        next(first.model.parameters()).add_(1.0)
    late.start().thread.join(SECONDS)
    assert isinstance(late.error, CollectiveError)
    assert "over after 12 steps" in str(late.error) and "'worker0' has changed its model since" in str(late.error)


def test_a_role_leaves_out_other_workers():
    with in_process_cluster("server", "trainer0", "trainer1") as agents:
        trainers = [Worker(agent, role="trainer", min_workers=2) for agent in agents[1:]]
        for each in trainers:
            each.start()
        finish(*trainers)
        assert all(each.sizes == [2] * STEPS for each in trainers)


def test_more_workers_than_samples_take_part_without_a_part(agents):
    workers = [Worker(agent, batch_size=2, min_workers=5) for agent in agents[:5]]
    for each in workers:
        each.start()
    finish(*workers)
    same(workers[0], alone(batch_size=2), exact=False)
    for each in workers:
        same(each, workers[0], exact=True)


def test_a_batch_that_grows_with_the_workers(agents):
    workers = [Worker(agent, batch_size=4, per_worker=True, min_workers=3) for agent in agents[:3]]
    for each in workers:
        each.start()
    finish(*workers)
    assert sorted(index for each in workers for step, used in each.used if step < 4 for index in used) == [*range(48)]


def test_a_second_training_needs_another_name_until_the_first_has_ended(agents):
    with agents[0].use():
        worker = Worker(agents[0])
        first = ElasticTraining(worker.model, worker.optimizer, ElasticSampler(X, 16))
        with pytest.raises(CollectiveError, match="takes part in a training 'training' already"):
            ElasticTraining(worker.model, worker.optimizer, ElasticSampler(X, 16))
        with pytest.raises(CollectiveError, match="call it for each part of a batch"):
            list(first.steps(3))
    again = Worker(agents[0])
    finish(again.start())
    assert again.training.completed == STEPS


def test_a_step_outside_of_the_loop_is_an_error(agents):
    with agents[0].use():
        worker = Worker(agents[0])
        training = ElasticTraining(worker.model, worker.optimizer, ElasticSampler(X, 16))
        with pytest.raises(CollectiveError, match="call step"):
            training.step(tg.tensor(1.0))
        with pytest.raises(CollectiveError, match="not in the training now"):
            print(training.size)


@pytest.mark.parametrize("name", ["min_workers", "pieces", "state_copies"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5])
def test_wrong_counts_are_errors(agents, name, value):
    with agents[0].use(), pytest.raises(ValueError, match=f"{name} must be a positive integer, and you gave"):
        Worker(agents[0])
        ElasticTraining(nn.Linear(1, 1), None, ElasticSampler(X, 16), **{name: value})
