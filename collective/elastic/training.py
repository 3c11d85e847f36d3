"""``ElasticTraining``: synchronous training by workers that come, leave and are lost between two steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from ...base.arguments import check_type
from ...base.errors import CollectiveError, LinkCutError, WorkerLostError
from ...base.job_credentials import asked_to_leave
from ...core import Tensor, default_generator
from ...core.futures import Future
from ...data import ElasticSampler
from ...nn import Module
from ...optim import Optimizer
from ...rpc.extend import current_agent
from ..agent_group import AgentGroup
from ..optim import ZeroRedundancyOptimizer
from .events import Decision, StepReport
from .gradients import GradientRows
from .members import ElasticMembers, ElasticTrainings
from .pieces import Block, Row, share
from .reduction import add_all, add_pieces, any_wants
from .shards import ShardedStep, StateShards
from .state import TrainingState

ENDS_A_GENERATION = (CollectiveError, WorkerLostError, LinkCutError)  # raised by its collectives


class _Piece(NamedTuple):
    """Part of a batch that one forward and backward works on."""

    number: int
    indices: list[int]
    weight: float
    last: bool


class ElasticTraining:
    """Synchronous data-parallel training whose workers may change from step to step.

    All members have equal parameters. At each step they share one batch, and take the step with the mean of its gradients. A
    worker that joins gets the state from them. A step counts when all members have its gradients: after the loss of a worker
    the others do at most that one step again, with the state before it.

    Args:
        model: the same module on all workers. Newcomers get its parameters and buffers from the others.
        optimizer: of its parameters.
        sampler: tells the batches; ``batch_size`` is of all workers together, or of each with ``per_worker=True``.
        min_workers: with fewer, the others wait for newcomers.
        pieces: split each batch into so many pieces, and add up their gradients in an order that follows from that number
            alone. Then the weights have the same bits for any numbers of workers. Otherwise each worker has one piece, and
            weights differ by rounding.
        scheduler: its ``step()`` is called after the optimizer's.
        parts: other objects whose state newcomers get, by name: with ``state_dict`` and ``load_state_dict``.
        role: only workers with this name and a number behind it take part, such as ``"trainer"``; ``None`` for all workers.
        name: of the training; a worker can take part in several.
        timeout: seconds until a wait for the other workers fails.
        state_copies: spread the optimizer's state over the members (ZeRO), so that so many have that of each parameter, and
            alone compute its steps. It is lost with all of these: 2 survive the loss of any one worker. ``None``: all have all.

    Attributes:
        completed: steps that count so far. Set it before the first step when the state comes from a checkpoint.
        loss: of the latest step, the mean over the batch.
        workers: names of the members, in the order of their ranks; empty before the first step and after the last.

    Raises:
        ValueError: an argument is out of range, or no parameter requires grad.
        TypeError: the optimizer is a ``ZeroRedundancyOptimizer``.
        CollectiveError: this worker takes part in a training of that name already.
        RpcError: there is no agent; call ``init_rpc`` first.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        sampler: ElasticSampler,
        min_workers: int = 1,
        pieces: int | None = None,
        scheduler: Any = None,
        parts: Mapping[str, Any] | None = None,
        role: str | None = None,
        name: str = "training",
        timeout: float = 300.0,
        state_copies: int | None = None,
    ) -> None:
        check_type("parts", parts, (Mapping, NoneType), "a dictionary of parts by name")
        check_type("role", role, (str, NoneType), "the name of a role")
        check_type("name", name, str, "a text")
        _check_count("min_workers", min_workers)
        if state_copies is not None:
            _check_count("state_copies", state_copies)
        if pieces is not None:
            _check_count("pieces", pieces)
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            raise TypeError(
                "a ZeroRedundancyOptimizer belongs to a group of fixed size; give ElasticTraining the optimizer of all "
                "parameters, and state_copies=2, which spreads its state over the members of the moment"
            )
        self.completed = 0
        self.loss = float("nan")
        self.workers: list[str] = []
        self._optimizer = optimizer
        self._sampler = sampler
        self._pieces = pieces
        self._scheduler = scheduler
        self._name = name
        self._timeout = timeout
        self._gradients = GradientRows(model)
        given = {"sampler": sampler, "scheduler": scheduler, **(parts or {})}
        settings = {
            "batch_size": (sampler.batch_size, "per worker" if sampler.per_worker else "in all"),
            "samples": sampler.samples,
            "pieces": pieces,
            "state_copies": state_copies,
        }
        given = {key: part for key, part in given.items() if part is not None}
        self._state = TrainingState(model, optimizer, given, settings)
        self._shards = StateShards(optimizer, self._state.tensors, state_copies) if state_copies else None
        self._moved = True  # the optimizer's state is where the members of this generation should have it
        self._agent = current_agent()
        self._members = ElasticMembers(
            self._agent, name, lambda worker: _has_role(worker, role), min_workers, timeout, self._decline
        )
        self._agent.part(ElasticTrainings).add(name, self._members)
        self._decision: Decision | None = None  # the generation that this worker is in
        self._group: AgentGroup | None = None
        self._holds = False  # the training's state
        self._prepared: Row | None = None  # sums of the next step, which counts when all members have them
        self._sharded: ShardedStep | None = None  # that step, where it is computed before it counts
        self._leaving = False
        self._leaves = False  # it has told the others so, in a commit
        self._over = False
        self._finished = False  # this worker gives the final state to those that come late
        self._planned = False  # the members change before the next step
        self._served = True  # newcomers of this generation have been offered the state
        self._piece: _Piece | None = None
        self._rows: dict[Block, Row] = {}

    # -- for users

    @property
    def rank(self) -> int:
        """Return this worker's place among the members."""
        return self._generation().index

    @property
    def size(self) -> int:
        """Return the number of members."""
        return self._generation().size()

    def steps(self, total: int) -> Iterator[list[int]]:
        """Iterate over this worker's parts of the batches, until ``total`` steps count; the first one joins the training.

        Call ``step(loss)`` with the loss of each part. When a step is repeated there is another part of the same batch. After
        ``leave``, and when the training is over, the iteration ends; a worker that comes later gets the final state. A worker
        that leaves the loop otherwise leaves the training, and the others repeat the step.

        The default random generator starts each part from a seed that follows from the sampler's, the step and the part.

        Args:
            total: steps of the training, not of this worker.

        Yields:
            Indices of samples.

        Raises:
            CollectiveTimeoutError: there are fewer than ``min_workers``, or another member does not come.
            ArgumentValueError: this worker's settings differ from those of the training.
            CollectiveError: all workers that had the state are lost, or ``step`` was not called; or the training is over, and
                none of the others has its final state any more.
        """
        _check_count("total", total)
        try:
            while not self._over:
                if self._decision is None or self._planned:
                    self._change()
                elif self.completed >= total:
                    self._change(finished=True)
                elif self._begin_generation():
                    yield from self._attempt()
            self._finish()
        finally:
            self._end()

    def step(self, loss: Tensor) -> bool:
        """Take a step with the gradients of all workers, after the backward of this one's part.

        Args:
            loss: a scalar, the mean over the samples of the part.

        Returns:
            Whether the step counts. If not, it is repeated, or the batch has another piece for this worker.

        Raises:
            CollectiveError: the loop of ``steps`` has not given a part for it.
        """
        piece, self._piece = self._piece, None
        if piece is None:
            raise CollectiveError("call step(loss) once for each part that steps() gives, inside of its loop")
        loss.backward()
        self._rows[piece.number, piece.number + 1] = self._gradients.collect(float(loss.item()), piece.weight)
        return self._reduce_and_commit() if piece.last else False

    def leave(self) -> None:
        """Leave the training after the step that is under way; from any thread. The loop ends then."""
        self._leaving = True

    # -- a step

    def _attempt(self) -> Iterator[list[int]]:
        self._rows.clear()
        mine = self._my_pieces()
        for piece in mine:
            self._piece = piece
            self._optimizer.zero_grad()
            self._gradients.restore_buffers()
            seeds = np.random.SeedSequence([self._sampler.seed, self.completed, piece.number])
            default_generator.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
            yield piece.indices
            if self._piece is not None:
                raise CollectiveError("the loop went on without step(loss); call it for each part of a batch")
        if not mine:
            self._reduce_and_commit()

    def _my_pieces(self) -> list[_Piece]:
        group = self._generation()
        batch = self._sampler.batch(group.size())
        count = self._pieces or group.size()
        found = []
        for number in share(count, group.index, group.size()):
            places = share(len(batch), number, count)
            if places:
                indices = batch[places.start : places.stop]
                found.append(_Piece(number, indices, len(indices) / len(batch), False))
        return [*found[:-1], *(piece._replace(last=True) for piece in found[-1:])]

    def _reduce_and_commit(self) -> bool:
        before, group = self.completed, self._generation()
        try:
            rows = self._sum(group)
            if self._shards is not None:
                self._gradients.place(rows)
                self._sharded = self._shards.compute(group)
            self._prepared = rows
            self._leaves = self._leaving = self._leaving or asked_to_leave()
            self._planned = any_wants(group, self._leaves or self._members.leads_newcomers())
            self._commit()
            if self._planned and self._shards is not None:
                self._shards.hand_over(group, self._leaves)
        except ENDS_A_GENERATION as error:
            self._stop(error)
            self._change()
        return self.completed > before

    def _sum(self, group: AgentGroup) -> Row:
        if self._pieces is None:
            return add_all(group, self._rows.get((group.index, group.index + 1)) or self._gradients.zeros())
        for number in share(self._pieces, group.index, group.size()):
            self._rows.setdefault((number, number + 1), self._gradients.zeros())
        return add_pieces(group, self._rows, self._pieces)

    def _commit(self) -> None:
        assert self._prepared is not None
        rows, self._prepared = self._prepared, None
        self.loss = self._gradients.place_buffers(rows)
        if self._shards is not None and self._sharded is not None:
            self._shards.commit(self._sharded)
        else:
            self._gradients.place(rows)
            self._optimizer.step()
        if self._scheduler is not None:
            self._scheduler.step()
        self._sampler.advance(self._generation().size())
        self.completed += 1

    # -- generations

    def _generation(self) -> AgentGroup:
        if self._group is None:
            raise CollectiveError("this worker is not in the training now; it joins with the first step of steps()")
        return self._group

    def _report(self, **more: Any) -> StepReport:
        prepared = self._prepared is not None
        number, decision = self._agent.number, self._decision
        leaves = self._leaving if self._shards is None else self._leaves
        return StepReport(number, decision, 0, self.completed, prepared, self._holds, leaves, **more)

    def _change(self, finished: bool = False) -> None:
        """Go on to the next generation, and to the one after it while one ends before it has begun."""
        while True:
            decision = self._members.change(self._report(finished=finished))
            try:
                self._enter(decision)
                return
            except ENDS_A_GENERATION as error:
                self._stop(error)

    def _enter(self, decision: Decision) -> None:
        if self._prepared is not None and decision.completed > self.completed:
            self._commit()  # all members have prepared it
        self._prepared, self._planned = None, False
        former, self._decision = self._decision, decision
        self._close()
        if self._agent.number not in decision.members:
            self._give_state_and_go(former, decision)
            return
        self._holds = self._agent.number in decision.holders
        self._moved = self._shards is None
        self._served = not self._holds or decision.members == decision.holders
        self._group = self._open(decision)
        if not self._holds:
            self._members.fetch(decision, self._state)
            self._gradients.keep_buffers()
            self._holds, self.completed = True, decision.completed

    def _open(self, decision: Decision) -> AgentGroup:
        name = f"{self._name} {decision.generation.number}.{decision.generation.leader}"
        peers = self._agent.peers
        for number in decision.members:
            if number not in peers:
                raise WorkerLostError(
                    f"worker {number} of the training was lost before this worker joined", str(number)
                )
            peers.at(number).check_present()
        self.workers = [peers.name(number) for number in decision.members]
        return AgentGroup(self._agent, name, decision.members, self._timeout)

    def _begin_generation(self) -> bool:
        """Give newcomers the state, and let the optimizer's parts move; return False if a member is lost meanwhile."""
        self._offer_state()
        if self._moved or self._shards is None:
            return True
        try:
            lost = self._shards.move(self._generation())
        except ENDS_A_GENERATION as error:
            self._stop(error)
            self._change()
            return False
        if lost:
            raise CollectiveError(
                f"all workers that had the optimizer's state of {lost} of {len(self._state.tensors)} parameters are lost; "
                "start again from a checkpoint, and give more state_copies"
            )
        self._moved = True
        return True

    def _offer_state(self) -> None:
        if not self._served:
            assert self._decision is not None
            self._served = True
            self._gradients.restore_buffers()
            self._members.ready(self._decision.generation, self._state)

    def _give_state_and_go(self, former: Decision | None, decision: Decision) -> None:
        self._over = True
        if self._agent.number in decision.holders and decision.members:
            self._gradients.restore_buffers()
            self._members.ready(decision.generation, self._state)
            self._members.wait_until_all_have_the_state(decision)

    def _finish(self) -> None:
        decision = self._decision
        if decision is None or not decision.finished or self._leaving:
            return
        if not self._holds:
            self._members.fetch_final(decision, self._state)
            self._gradients.keep_buffers()
        self.completed = decision.completed
        self._finished = self._agent.number in decision.holders

    def _give_state_at_once(self, decided: Future[Decision]) -> None:
        if decided.exception() is None and self._agent.number in (decision := decided.value()).holders:
            self._members.ready(decision.generation, self._state)

    def _stop(self, error: BaseException) -> None:
        """Let the next collective of this generation fail on all members: this worker does not take part in it."""
        if self._group is not None:
            self._group.give_up(self._group.begin("elastic stop", None), error)

    def _decline(self, decision: Decision) -> None:
        group = self._open(decision)
        group.give_up(group.begin("elastic stop", None), CollectiveError("a worker had left before this generation"))

    def _end(self) -> None:
        """Leave at once, if the loop was left before its end, without a wait."""
        self._gradients.restore_buffers()
        if not self._over and self._group is not None and not self._agent.closed:
            self._stop(CollectiveError(f"worker {self._agent.name!r} has left the training"))
            self._leaves = self._leaving = self._over = True
            self._members.submit(self._report()).add_done_callback(self._give_state_at_once)
        self._over = self._members.ended = True
        self._close()
        if self._finished and self._decision is not None:
            self._members.ready_for_late(self._decision.generation, self._state)

    def _close(self) -> None:
        group, self._group, self.workers = self._group, None, []
        if group is not None:
            group.close()


def _has_role(worker: str, role: str | None) -> bool:
    return role is None or re.fullmatch(rf"{re.escape(role)}\d*", worker) is not None


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, and you gave {value!r}")
