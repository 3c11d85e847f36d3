"""The simulator: real agents on one thread. A small run of it, and proof that it finds guarantees broken on purpose."""

import copy
import gc
import os
import sys
from dataclasses import replace

import pytest
from telegrad.autograd_dist.graph import ContextGraph
from telegrad.autograd_dist.termination import Over, Termination
from telegrad.base.errors import RpcError, WorkerLostError
from telegrad.rpc import rpc_async, rpc_sync
from telegrad.rpc.buffers.copies import CopyMessages
from telegrad.rpc.calls.caller import Caller
from telegrad.rpc.calls.dispatch import CallTable
from telegrad.rpc.calls.server_call import ServerCall
from telegrad.rpc.exactly_once.applied import AppliedCalls, Turn
from telegrad.rpc.exactly_once.kept import KeptCalls
from telegrad.rpc.exactly_once.sending import StreamSender
from telegrad.rpc.flow.credits import Receipts
from telegrad.rpc.group.gathering import Rounds
from telegrad.rpc.group.quiescence import Quiescence
from telegrad.rpc.group.quiescence_messages import CountsReport
from telegrad.rpc.links.control_channel import ControlChannel
from telegrad.rpc.links.control_queue import ControlQueue
from telegrad.rpc.links.intervals import IntervalSet
from telegrad.rpc.losses.graph import LinkGraph
from telegrad.rpc.losses.losses import Losses
from telegrad.rpc.losses.pieces import Piece
from telegrad.rref import protocol as p
from telegrad.rref import remote
from telegrad.rref.extend import RRefContext
from telegrad.rref.owner_table import OwnerTable
from telegrad.testing.cluster import in_process_cluster
from telegrad.testing.simulator import FaultPlan, Simulation, Workload, buffers, calls, current_worker, meshes, mixed
from telegrad.testing.simulator.command import main
from telegrad.testing.simulator.events import State
from telegrad.testing.simulator.faults import KINDS
from telegrad.testing.simulator.simulation import OPTIONS

# A process may be killed between the call of a coroutine's function and the first step of the coroutine.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine '[a-z_]*' was never awaited:RuntimeWarning")

SEEDS = range(6)
HOSTILE = FaultPlan(
    rates={"delay": 0.01, "reorder": 0.02, "repeat": 0.02, "drop": 0.02},
    pauses={"break": 3.0, "cut": 5.0, "split": 20.0, "stop": 10.0, "kill": 30.0, "slow": 10.0},
    longest=12.0,
)


def run(seed, events=3000, **options):
    return Simulation(seed, agents=6, events=events, plan=HOSTILE, **options).run()


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


def use_buffers(monkeypatch):
    monkeypatch.setattr(mixed, "ACTIVITIES", {buffers.use: 4, buffers.end: 0.5, calls.plain: 0.3})
    monkeypatch.setattr(mixed, "WITH_RESTARTS", mixed.ACTIVITIES)


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


def with_restarts(seed, kill=5.0):
    plan = replace(HOSTILE, pauses={**HOSTILE.pauses, "kill": kill, "leave": 12.0})
    return Simulation(seed, agents=5, events=4000, plan=plan, restarts=True).run()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_guarantee_holds_with_workers_that_are_started_again(seed):
    result = with_restarts(seed)
    assert not result.violations, "\n".join([f"seed {seed}:", *result.violations, *result.last])
    assert result.faults["kill"] and result.work["retried calls"] and result.work["gathered"]
    assert result.work["checkpoints"] > 1 and result.work["exactly once"] > 1


def forgets_calls_that_no_checkpoint_has(monkeypatch):
    def saved(self, state):
        self.durable = self.total
        return [(key, stream.applied) for key, stream in self._streams.items()]

    monkeypatch.setattr(AppliedCalls, "saved", saved)


def leaves_calls_to_a_lost_callee_alone(monkeypatch):
    monkeypatch.setattr(StreamSender, "_callee_lost", lambda self, peer: None)
    monkeypatch.setattr(KeptCalls, "was_sent_to", lambda self, callee: True)


def applies_what_comes_again(monkeypatch):
    monkeypatch.setattr(AppliedCalls, "_repeated", lambda self, stream, number: Turn.NOW)
    monkeypatch.setattr(AppliedCalls, "add", add_out_of_order)


def add_out_of_order(self, key, number, result, problem=""):
    self._stream(key).applied += 1
    self.total += 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutation",
    [forgets_calls_that_no_checkpoint_has, leaves_calls_to_a_lost_callee_alone, applies_what_comes_again],
)
def test_exactly_once_broken_on_purpose_is_found(monkeypatch, mutation):
    mutation(monkeypatch)
    assert any(with_restarts(seed).violations for seed in SEEDS)


def test_a_restarted_worker_that_does_not_answer_in_shutdown_is_noticed(monkeypatch):
    monkeypatch.setattr(Quiescence, "_answer_if_possible", answer_if_all_losses_are_known)
    assert any("shutdown" in violation for seed in range(4) for violation in with_restarts(seed).violations)


def answer_if_all_losses_are_known(self):
    """Answer a leader as a worker does that must have heard of each loss itself."""
    for leader, ask in list(self._questions.items()) if self._counts and not self.finished else ():
        if self._lost.issuperset(ask.lost):
            del self._questions[leader]
            self._send(leader, CountsReport(ask.round, self._counts()))


# -- guarantees broken on purpose


def serves_twice(monkeypatch):
    serve = ServerCall._serve

    def twice(self):
        if self.call_id % 50 == 0:
            serve(copy.copy(self))
        serve(self)

    monkeypatch.setattr(ServerCall, "_serve", twice)


def takes_repetitions(monkeypatch):
    add = IntervalSet.add
    monkeypatch.setattr(IntervalSet, "add", lambda self, number: add(self, number) or True)


def acknowledges_what_it_loses(monkeypatch):
    deliver = ControlChannel._deliver

    def forgetful(self, peer, topic, payload):
        if peer.control.received % 7:
            deliver(self, peer, topic, payload)

    monkeypatch.setattr(ControlChannel, "_deliver", forgetful)


def never_resends(monkeypatch):
    monkeypatch.setattr(ControlQueue, "_schedule", lambda self, message, now: None)


def forgets_deletes(monkeypatch):
    carry_out = RRefContext._carry_out

    def is_delete(instruction):
        return isinstance(instruction, p.Send) and isinstance(instruction.message, p.Delete)

    def without_deletes(self, instructions):
        carry_out(self, [each for each in instructions if not is_delete(each)])

    monkeypatch.setattr(RRefContext, "_carry_out", without_deletes)


def frees_too_early(monkeypatch):
    monkeypatch.setattr(OwnerTable, "register", lambda *args: None)


def forgets_the_references_of_the_lost(monkeypatch):
    monkeypatch.setattr(OwnerTable, "worker_lost", lambda self, key: iter(()))


def hangs_on_lost_answers(monkeypatch):
    monkeypatch.setattr(CallTable, "_expire", lambda self, queue, timeout: None)
    monkeypatch.setattr(Caller, "fail_where", lambda self, condition, error: None)


def answers_with_the_wrong_error(monkeypatch):
    monkeypatch.setattr(
        Caller, "fail_expired", lambda self, call, where="": self.fail(call, RpcError("something went wrong"))
    )


def never_answers_failures(monkeypatch):
    monkeypatch.setattr(ServerCall, "fail", lambda self, error: None)


def keeps_the_last_gradient_only(monkeypatch):
    def overwrite(self, leaf, gradient):
        self._gradients.pop(id(leaf), None)
        accumulate(self, leaf, gradient)

    accumulate = ContextGraph.accumulate
    monkeypatch.setattr(ContextGraph, "accumulate", overwrite)


def ends_backwards_too_early(monkeypatch):
    rested = Termination.rested

    def at_once(self, request, outgoing):
        instructions = rested(self, request, outgoing)
        return [*instructions, Over()] if self.is_root and not self.busy else instructions

    monkeypatch.setattr(Termination, "rested", at_once)


def keeps_room(monkeypatch):
    used = Receipts.used
    monkeypatch.setattr(Receipts, "used", lambda self, size: None if size % 7 == 0 else used(self, size))


def keeps_what_was_gathered(monkeypatch):
    monkeypatch.setattr(Rounds, "withdraw", lambda self, name, ticket: None)
    monkeypatch.setattr(Rounds, "end", lambda self: [])


def disagrees_about_losses(monkeypatch):
    lose = Losses._lose

    def doubtful(self, peer, loss):
        if self._state.rank:
            lose(self, peer, loss)

    monkeypatch.setattr(Losses, "_lose", doubtful)


@pytest.mark.parametrize(
    "mutation",
    [
        serves_twice,
        takes_repetitions,
        acknowledges_what_it_loses,
        never_resends,
        forgets_deletes,
        frees_too_early,
        forgets_the_references_of_the_lost,
        hangs_on_lost_answers,
        answers_with_the_wrong_error,
        never_answers_failures,
        keeps_the_last_gradient_only,
        ends_backwards_too_early,
        disagrees_about_losses,
        keeps_room,
        keeps_what_was_gathered,
    ],
)
def test_a_guarantee_broken_on_purpose_is_found(monkeypatch, mutation):
    mutation(monkeypatch)
    assert any(run(seed, events=2000).violations for seed in range(20))


def leaves_without_a_word(monkeypatch):
    monkeypatch.setattr(CopyMessages, "leave", lambda self: None)


def forgets_a_piece(monkeypatch):
    accept = CopyMessages.accept
    monkeypatch.setattr(CopyMessages, "accept", lambda self, piece, answer: piece == 3 or accept(self, piece, answer))


@pytest.mark.parametrize(("seed", "mutation"), [(4, leaves_without_a_word), (1, forgets_a_piece)])
def test_broken_buffers_are_found(seed, mutation, monkeypatch):
    use_buffers(monkeypatch)
    mutation(monkeypatch)
    assert Simulation(seed, agents=6, events=1500).run().violations


@pytest.mark.slow
def test_a_loss_of_a_worker_that_others_reach_is_found(monkeypatch):
    def direct(self, start, members):
        return {rank: rank for rank in members if rank != start and self.linked(start, rank)}

    monkeypatch.setattr(LinkGraph, "paths", direct)
    monkeypatch.setattr(LinkGraph, "splits", lambda *_: True)
    monkeypatch.setattr(Piece, "confirms", lambda *_: True)
    monkeypatch.setattr(Piece, "speaks", True)
    plan = FaultPlan(pauses={"cut": 5.0}, longest=12.0)
    found = [Simulation(seed, agents=6, events=6000, plan=plan).run().violations for seed in SEEDS]
    assert any("though it could reach the majority" in violation for violations in found for violation in violations)


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
