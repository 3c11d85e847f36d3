"""Compiled steps in the simulator: bits of one process or an error by name, under faults; and mistakes are found."""

import threading

import pytest
from telegrad.capture.extend import Leaving
from telegrad.core.extend import interceptors_entered
from telegrad.rpc import rpc_sync
from telegrad.testing.simulator import FaultPlan, Simulation, Workload
from telegrad.testing.simulator.blocking import blocking
from telegrad.testing.simulator.captured_steps import CapturedSteps

HOSTILE = FaultPlan(
    rates={"delay": 0.01, "reorder": 0.02, "repeat": 0.02, "drop": 0.02},
    pauses={"break": 3.0, "cut": 5.0, "split": 20.0, "stop": 10.0, "kill": 30.0, "slow": 10.0},
    longest=12.0,
)


def run(seed, restarts=False, events=1500, plan=HOSTILE):
    return Simulation(seed, 4, events, CapturedSteps(), plan, restarts=restarts).run()


@pytest.mark.parametrize(("seed", "restarts"), [(0, False), (9, True)])
def test_compiled_steps_under_faults(seed, restarts):
    result = run(seed, restarts)
    assert not result.violations, "\n".join([*result.violations, *result.last])
    assert result.work["replays"] > 10, result.work
    assert result.work["nested replays"] > 0 or seed == 0, result.work


def test_threads_of_killed_workers_end():
    plan = FaultPlan(pauses={"kill": 0.5}, mortality=1.0)
    for seed in range(3):
        run(seed, restarts=True, events=400, plan=plan)
        assert not interceptors_entered
        assert not [each for each in threading.enumerate() if "_main" in each.name]


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True])
def test_compiled_steps_under_more_faults(restarts):
    assert not [seed for seed in range(10, 13) if run(seed, restarts, 3000).violations]


@pytest.mark.slow
def test_wrong_gradients_of_replays_are_found(monkeypatch):
    apply = Leaving.apply
    monkeypatch.setattr(Leaving, "apply", lambda self, grads: apply(self, tuple(each * 2 for each in grads)))
    assert any("in one process" in each for each in run(0, events=800, plan=FaultPlan()).violations)


class Blocking(Workload):
    """The first worker calls another in code that blocks; the second one blocks until it is cancelled."""

    def __init__(self):
        super().__init__()
        self.errors = []

    async def main(self, worker):
        if worker.rank == 0:
            self.counts[await blocking(worker, rpc_sync, 1, int, ("5",))] += 1
            try:
                await blocking(worker, rpc_sync, 1, int, ("five",))
            except ValueError as error:
                self.errors.append(error)


def test_code_that_blocks():
    workload = Blocking()
    result = Simulation(0, 2, 50, workload, FaultPlan()).run()
    assert not result.violations
    assert workload.counts == {5: 1}
    assert "five" in str(workload.errors[0])
