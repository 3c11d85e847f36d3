"""Guarantees that are broken on purpose: the simulator finds each."""

import copy

import pytest
from helpers.simulations import SEEDS, run, use_buffers, with_restarts
from telegrad.autograd_dist.graph import ContextGraph
from telegrad.autograd_dist.termination import Over, Termination
from telegrad.base.errors import RpcError
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
from telegrad.rref.extend import RRefContext
from telegrad.rref.owner_table import OwnerTable
from telegrad.testing.simulator import FaultPlan, Simulation

# A process may be killed between the call of a coroutine's function and the first step of the coroutine.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine '[a-z_]*' was never awaited:RuntimeWarning")


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
    assert any(with_restarts(seed).violations for seed in range(6, 18))  # about every second seed finds it


def test_a_restarted_worker_that_does_not_answer_in_shutdown_is_noticed(monkeypatch):
    monkeypatch.setattr(Quiescence, "_answer_if_possible", answer_if_all_losses_are_known)
    assert any("shutdown" in violation for seed in range(4) for violation in with_restarts(seed).violations)


def answer_if_all_losses_are_known(self):
    """Answer a leader as a worker does that must have heard of each loss itself."""
    for leader, ask in list(self._questions.items()) if self._counts and not self.finished else ():
        if self._lost.issuperset(ask.lost):
            del self._questions[leader]
            self._send(leader, CountsReport(ask.round, self._counts()))


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
