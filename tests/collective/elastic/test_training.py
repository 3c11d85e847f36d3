"""Elastic training by agents in one process: joins, leaves and deaths, against one worker that trains alone."""

import threading

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.collective import ElasticTraining
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
