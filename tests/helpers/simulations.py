"""Runs of the simulator under every kind of fault, for several files of tests."""

from dataclasses import replace

from telegrad.testing.simulator import FaultPlan, Simulation, buffers, calls, mixed

SEEDS = range(6)
HOSTILE = FaultPlan(
    rates={"delay": 0.01, "reorder": 0.02, "repeat": 0.02, "drop": 0.02},
    pauses={"break": 3.0, "cut": 5.0, "split": 20.0, "stop": 10.0, "kill": 30.0, "slow": 10.0},
    longest=12.0,
)


def run(seed, events=3000, **options):
    return Simulation(seed, agents=6, events=events, plan=HOSTILE, **options).run()


def with_restarts(seed, kill=5.0):
    plan = replace(HOSTILE, pauses={**HOSTILE.pauses, "kill": kill, "leave": 12.0})
    return Simulation(seed, agents=5, events=4000, plan=plan, restarts=True).run()


def use_buffers(monkeypatch):
    monkeypatch.setattr(mixed, "ACTIVITIES", {buffers.use: 4, buffers.end: 0.5, calls.plain: 0.3})
    monkeypatch.setattr(mixed, "WITH_RESTARTS", mixed.ACTIVITIES)
