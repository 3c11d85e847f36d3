"""Exactly-once calls of a simulated workload, with checkpoints: each update counts once, whatever dies and goes on.

A worker's state is a ledger of the updates that it has applied. It is saved together with the real journal of calls; each
incarnation begins from the last checkpoint that was written. What a caller calls under a number depends on the number alone.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...base.errors import CheckpointError, RpcError
from ...core.futures import Future, complete_once
from ...rpc import exactly_once, rpc_async
from ...rpc.exactly_once.applying import Applying
from ...rpc.exactly_once.call_journal import CallJournal
from ...rpc.exactly_once.saving import Saving
from ...rpc.exactly_once.sending import StreamSender
from .journal import NAME
from .worker import Worker, current_worker

if TYPE_CHECKING:
    from .mixed import Mixed
    from .simulation import Simulation

MOST_KEPT = 12  # calls to one callee that no checkpoint has
EVERY = (3, 10, 30)  # calls between two checkpoints
PAUSE_SECONDS = 0.05  # that a snapshot takes, at most
WRITE_SECONDS = 2.0  # that a checkpoint takes until it is durable, at most
TIMEOUTS = (0.5, 5.0, 20.0)
LOOK_SECONDS = 0.5
LOOKS = 10  # until a callee is asked for a checkpoint again


class Ledger:
    """Updates of one worker: the state that its checkpoints have.

    Attributes:
        applied: how many, by the caller's name; of updates that a worker passes on, by the names of both, joined by ``>``.
        passed_on: how many updates of a caller it has passed on to a worker, by both names.
    """

    def __init__(self) -> None:
        self.applied: Counter[str] = Counter()
        self.passed_on: Counter[tuple[str, str]] = Counter()


class Ledgers:
    """Ledgers and checkpoints of a simulation.

    Attributes:
        of: the ledger of each process, by its number.
        disk: the durable checkpoint of each place, by name: the journal's state, and a ledger.
        made: the calls that a worker has made, by its name and that of the callee, also those after its checkpoint.
    """

    def __init__(self) -> None:
        self.of: dict[int, Ledger] = {}
        self.disk: dict[str, tuple[dict[str, Any], Ledger]] = {}
        self.made: Counter[tuple[str, str]] = Counter()

    def check(self, simulation: Simulation) -> Iterator[str]:
        """Check that each call that was made has been applied, and that the checkpoints on the disks have it."""
        living = {worker.name: worker for worker in simulation.living()}
        for (caller, callee), made in self.made.items():
            if callee in living:
                yield from _compare(callee, self.of[living[callee].rank], caller, made)
                yield from _compare(f"the disk of {callee}", self.disk[callee][1], caller, made)
        for worker in living.values():
            for (caller, callee), passed_on in self.of[worker.rank].passed_on.items():
                if callee in living:
                    yield from _compare(callee, self.of[living[callee].rank], f"{caller}>{worker.name}", passed_on)


def _compare(name: str, ledger: Ledger, caller: str, made: int) -> Iterator[str]:
    if ledger.applied[caller] != made:
        yield f"{caller} made {made} calls, and {name} has {ledger.applied[caller]}"


def ledgers(worker: Worker) -> Ledgers:
    """Return the ledgers of the simulation in which a worker is."""
    workload: Mixed = worker.simulation.workload  # type: ignore[assignment]
    return workload.ledgers


@exactly_once
def apply(caller: str, number: int, onward: str) -> int:
    """Apply an update; pass every fourth on to another worker."""
    worker = current_worker()
    ledger = ledgers(worker).of[worker.rank]
    if ledger.applied[caller] != number:
        worker.simulation.violation(
            f"{worker.name} applied {ledger.applied[caller]} calls of {caller}, then call {number}"
        )
    ledger.applied[caller] += 1
    worker.simulation.workload.counts["applied"] += 1
    if onward:
        count = ledger.passed_on[caller, onward]
        ledger.passed_on[caller, onward] += 1
        rpc_async(onward, apply, (f"{caller}>{worker.name}", count, ""), timeout=0).add_done_callback(Future.exception)
    return number


# -- a worker begins and ends


def begin(worker: Worker) -> None:
    """Go on from the checkpoint of this place, or save a first one, and open the journal of calls."""
    agent, book = worker.agent, ledgers(worker)
    journal, applying = agent.part(CallJournal), agent.part(Applying)
    agent.part(StreamSender).token = f"{worker.random.getrandbits(64):016x}"
    if worker.name in book.disk:
        state, ledger = copy.deepcopy(book.disk[worker.name])
        book.of[worker.rank] = ledger
        journal.load_state_dict(state)
    else:
        book.of[worker.rank] = Ledger()
        book.disk[worker.name] = _snapshot(worker)
    saving = Saving(applying, partial(_begin_to_save, worker), worker.random.choice(EVERY))
    applying.on_applied, applying.on_ask = saving.look, saving.ask
    applying.open()


async def end(worker: Worker) -> None:
    """Make the calls after the checkpoint again, as the incarnation before did; then wait until all are durable."""
    for (caller, callee), made in list(ledgers(worker).made.items()):
        while caller == worker.name and _next_number(worker, callee) < made and not worker.agent.closed:
            await call(worker, callee)
    sending = worker.agent.part(StreamSender)
    while not worker.agent.closed:
        streams = [stream for stream in sending.streams() if sending.unsaved(stream) is not None]
        if not streams:
            return
        for _ in range(LOOKS):
            if not all(stream.window.is_empty() for stream in streams):
                await asyncio.sleep(LOOK_SECONDS)
        for stream in streams:
            stream.asked = False


# -- calls


async def update(worker: Worker) -> None:
    """Make a call to any worker."""
    await call(worker, f"w{worker.random.randrange(worker.simulation.places)}")


async def call(worker: Worker, callee: str) -> None:
    """Make the next call to a worker: it ends with its result, or an error that names a worker."""
    await _room(worker, callee)
    book, number = ledgers(worker), _next_number(worker, callee)
    book.made[worker.name, callee] = max(book.made[worker.name, callee], number + 1)
    what = f"exactly-once call {number} of {worker.name} to {callee}"
    try:
        arguments = (worker.name, number, _onward(worker, callee, number))
        result = await rpc_async(callee, apply, arguments, timeout=worker.random.choice(TIMEOUTS))
    except (RpcError, CheckpointError) as error:
        lost = isinstance(error, CheckpointError) or "was applied before" in str(error)
        if lost or not NAME.search(str(error)):
            worker.simulation.violation(f"{what} failed with {type(error).__name__}: {error}")
        return
    worker.simulation.workload.counts["exactly once"] += 1
    if result != number:
        worker.simulation.violation(f"{what} returned {result!r}")


async def _room(worker: Worker, callee: str) -> None:
    """Wait, as ``rpc_async`` would, until another call can be kept."""
    sending, looks = worker.agent.part(StreamSender), 0
    while not worker.agent.closed:
        stream = sending.find(callee, "", sending.token)
        if stream is None or stream.window.next - stream.window.oldest < MOST_KEPT:
            return
        looks += 1
        stream.asked = stream.asked and looks % LOOKS > 0
        sending.unsaved(stream)
        await asyncio.sleep(LOOK_SECONDS)


def _next_number(worker: Worker, callee: str) -> int:
    sending = worker.agent.part(StreamSender)
    stream = sending.find(callee, "", sending.token)
    return 0 if stream is None else stream.window.next


def _onward(worker: Worker, callee: str, number: int) -> str:
    if number % 4:
        return ""
    onward = f"w{(number // 4 + worker.place) % worker.simulation.places}"
    return "" if onward == callee else onward


# -- checkpoints


def _begin_to_save(worker: Worker, step: int) -> Future[None]:
    saved: Future[None] = Future()
    task = worker.spawn(_save(worker))
    task.add_done_callback(lambda done: complete_once(saved, error=None if done.cancelled() else done.exception()))
    return saved


async def _save(worker: Worker) -> None:
    """Save a checkpoint as a ``Checkpointer`` does: from a snapshot between two calls, beside those that follow."""
    journal = worker.agent.part(CallJournal)
    journal.pause()
    try:
        await asyncio.sleep(worker.random.random() * PAUSE_SECONDS)
        state, ledger = _snapshot(worker)
    finally:
        journal.go_on()
    await asyncio.sleep(worker.random.random() * WRITE_SECONDS)
    ledgers(worker).disk[worker.name] = state, ledger
    worker.simulation.workload.counts["checkpoints"] += 1
    journal.saved(state)


def _snapshot(worker: Worker) -> tuple[dict[str, Any], Ledger]:
    return copy.deepcopy((worker.agent.part(CallJournal).state_dict(), ledgers(worker).of[worker.rank]))
