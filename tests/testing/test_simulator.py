"""The simulator: real agents on one thread. A small run of it."""

import gc
import os
import sys
from dataclasses import replace

import pytest
from helpers.simulations import SEEDS, run, use_buffers, with_restarts
from telegrad.base.errors import RpcError, WorkerLostError
from telegrad.rpc import rpc_async, rpc_sync
from telegrad.rref import remote
from telegrad.testing.cluster import in_process_cluster
from telegrad.testing.simulator import FaultPlan, Simulation, Workload, calls, current_worker, meshes, mixed
from telegrad.testing.simulator.command import main
from telegrad.testing.simulator.events import State
from telegrad.testing.simulator.faults import KINDS
from telegrad.testing.simulator.simulation import OPTIONS

# A process may be killed between the call of a coroutine's function and the first step of the coroutine.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine '[a-z_]*' was never awaited:RuntimeWarning")


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_guarantee_holds_under_every_kind_of_fault(seed):
    result = run(seed)
    assert not result.violations, "\n".join([f"seed {seed}:", *result.violations, *result.last])
    assert result.events > 3000 and result.work["answered"] > 0


@pytest.mark.parametrize("window", [(1, 1), (20_000, 2)])
@pytest.mark.parametrize("seed", [6, 7])
def test_every_guarantee_holds_with_small_windows(seed, window):
    """Found by the simulator: a call to oneself that stood in line was sent twice, and never ran."""
    options = replace(OPTIONS, window_bytes=window[0], window_messages=window[1])
    assert run(seed, events=8000, options=options).violations == []


@pytest.mark.parametrize(("seed", "restarts"), [(0, False), (5, True)])
def test_calls_to_many_workers_survive_every_kind_of_fault(seed, restarts, monkeypatch):
    monkeypatch.setattr(mixed, "ACTIVITIES", {meshes.together: 3, meshes.added_up: 1, calls.plain: 1})
    monkeypatch.setattr(mixed, "WITH_RESTARTS", mixed.ACTIVITIES)
    result = Simulation(seed, agents=9, events=3000, restarts=restarts).run()
    assert result.violations == [] and result.work["answered"] > 0


@pytest.mark.parametrize(("seed", "restarts"), [(1, False), (9, True)])
def test_buffers_survive_every_kind_of_fault(seed, restarts, monkeypatch):
    """Found by the simulator: readers that had given up took the room of others, whose fetches then took too long."""
    use_buffers(monkeypatch)
    result = Simulation(seed, agents=6, events=1500, restarts=restarts).run()
    assert result.violations == [] and result.work["read"] and result.work["written"] and result.work["buffers fetched"]


def split(seed, longest):
    plan = FaultPlan(pauses={"split": 10.0}, longest=longest)
    result = Simulation(seed, agents=6, events=3000, plan=plan).run()
    assert result.violations == [] and result.faults["split"]
    return result.lost


def test_short_splits_lose_nobody():
    assert [split(seed, longest=2.5) for seed in SEEDS] == [[]] * len(SEEDS)


def test_long_splits_lose_the_minority():
    lost = [split(seed, longest=60.0) for seed in SEEDS]
    # Of several splits, one after another, each may lose a minority of those that are left.
    assert any(lost) and sum(len(names) > 4 for names in lost) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_slow_processes_are_neither_lost_nor_cut_off(seed):
    """A handshake with one takes up to 20 s, longer than one may be silent: calls run out of time, and nothing else happens."""
    plan = FaultPlan(pauses={"slow": 1.0}, longest=60.0)
    result = Simulation(seed, agents=6, events=2000, plan=plan).run()
    assert result.violations == result.lost == [] and result.faults["slow"] and result.work["answered"]
    # An RpcError is that of a reference whose creating call ran out of time.
    assert {kind for kind in result.work if kind.endswith("Error")} <= {"RpcTimeoutError", "RpcError"}


@pytest.mark.slow
def test_every_kind_of_fault_happens():
    happened = {kind for seed in SEEDS for kind, count in run(seed, events=4000).faults.items() if count}
    assert happened == set(KINDS)


def test_the_same_seed_gives_the_same_run_in_every_process(run_python):
    script = (
        "from telegrad.testing.simulator import Simulation;"
        "result = Simulation(5, agents=4, events=1500).run();"
        "print(result.digest, result.events, sorted(result.work.items()))"
    )
    outputs = [run_python("-c", script, env={**os.environ, "PYTHONHASHSEED": seed}) for seed in ("1", "2")]
    here = Simulation(5, agents=4, events=1500).run()
    assert outputs[0] == outputs[1] == f"{here.digest} {here.events} {sorted(here.work.items())}\n"


def test_another_seed_gives_another_run():
    assert run(0, events=500).digest != run(1, events=500).digest


# -- workers that are started again


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_guarantee_holds_with_workers_that_are_started_again(seed):
    result = with_restarts(seed)
    assert not result.violations, "\n".join([f"seed {seed}:", *result.violations, *result.last])
    assert result.faults["kill"] and result.work["retried calls"] and result.work["gathered"]
    assert result.work["checkpoints"] > 1 and result.work["exactly once"] > 1


# -- for users


class Pinging(Workload):
    """Each worker calls the next one a few times."""

    async def main(self, worker):
        for _ in range(3):
            to = (worker.rank + 1) % len(worker.simulation.workers)
            self.counts[await rpc_async(to, who_are_you)] += 1


def who_are_you():
    return current_worker().name


def test_a_workload_of_ones_own():
    result = Simulation(0, agents=3, events=10, workload=Pinging(), plan=FaultPlan()).run()
    assert result.violations == [] and result.work == {"w0": 3, "w1": 3, "w2": 3}


class Blocking(Workload):
    """Waits where nothing may."""

    async def main(self, worker):
        try:
            rpc_sync(worker.rank, who_are_you)
        except RuntimeError as error:
            self.counts[str(error)] += 1


def test_waiting_is_refused():
    result = Simulation(0, agents=2, events=10, workload=Blocking(), plan=FaultPlan()).run()
    assert "make the function `async def` and await the future" in next(iter(result.work))


class Failing(Workload):
    """Its program raises."""

    async def main(self, worker):
        raise ZeroDivisionError(worker.name)


def test_a_workload_that_raises_is_a_violation():
    result = Simulation(0, agents=2, events=10, workload=Failing(), plan=FaultPlan()).run()
    assert any("ZeroDivisionError" in violation for violation in result.violations)


def test_the_command_says_how_to_replay_a_violation(capsys):
    name = f"{__name__}:Failing"
    sys.modules.setdefault(__name__, sys.modules[Failing.__module__])
    assert main(["--seed", "3", "--agents", "2", "--events", "10", "--workload", name]) == 1
    output = capsys.readouterr().out
    assert "--seed 3 --agents 2 --events 10" in output and "1 of 1 seeds found a violation: [3]" in output


def test_the_command_prints_a_table(capsys):
    assert main(["--seeds", "2", "--agents", "3", "--events", "300"]) == 0
    output = capsys.readouterr().out
    assert "0 of 2 seeds found a violation" in output
    assert all(kind in output for kind in KINDS)


@pytest.mark.slow
def test_a_reference_that_could_not_be_created_is_collected(monkeypatch, until):
    """Found by the simulator: the error that the reference kept had a traceback, and in it the frame with the reference."""
    with in_process_cluster("a", "b") as (a, _), a.use():
        with monkeypatch.context() as cut:
            cut.setattr(a.sessions, "route", refuse_to_route)
            cut.setattr(a.control, "_send", lambda peer, frame: None)
            create_and_forget()
        gc.collect()
        until(lambda: not any(a.debug_info()["references"].values()))


def refuse_to_route(peer):
    raise RpcError(f"there is no way to worker {peer.info.name!r}")


def create_and_forget():
    reference = remote("b", int)
    with pytest.raises(RpcError, match="no way"):
        reference.to_here()


class Freezing(Workload):
    """The last worker freezes, which the others hear of from one that calls it; they have had no session to it."""

    def __init__(self):
        super().__init__()
        self.errors = []

    async def main(self, worker):
        if worker.rank:
            return
        frozen = worker.simulation.workers[-1]
        for rank in (1, frozen.rank):
            await rpc_async(rank, who_are_you)
        frozen.state = State.STOPPED
        worker.simulation.network.silence(frozen)
        try:
            await rpc_async(frozen.rank, who_are_you, timeout=0)
        except RpcError as error:
            self.errors.append(error)


@pytest.mark.parametrize("times", [(1.0, 3.0), (3.0, 2.0), (1.0, 6.1), (2.0, 0.5)])
@pytest.mark.parametrize("agents", [3, 5])
def test_a_frozen_worker_is_lost_and_not_cut_off_before_the_others_could_know(times, agents):
    keepalive, timeout = times
    options = replace(OPTIONS, keepalive=keepalive, reconnect_timeout=timeout)
    for seed in range(8):
        workload = Freezing()
        Simulation(seed, agents=agents, events=10, workload=workload, plan=FaultPlan(), options=options).run()
        assert [type(error) for error in workload.errors] == [WorkerLostError], (seed, workload.errors)
