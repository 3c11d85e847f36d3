"""Process groups over the agent's lanes.

Every collective is one or two *exchanges*: each member sends parts to others and takes the parts that others sent to it, all
directly. A large ``all_reduce`` first gives each member one chunk of all arrays to combine, then everybody the combined chunks:
the same number of bytes as a ring, in 2 steps instead of 2 (n - 1). Parts are combined in the order of the members, so that all
have the same result, to the bit. Members on one host do ``all_reduce``s in shared memory instead.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..base.errors import (
    AgentClosedError,
    CollectiveError,
    CollectiveTimeoutError,
    RpcError,
    RpcTimeoutError,
    WorkerLostError,
)
from ..core.extend import Array
from ..core.futures import Future, copy_error, wait_all
from ..core.shared_memory import Address
from ..rpc.extend import Agent
from .calls import CollectiveCall, called
from .failures import Failures
from .group import Numbers, ProcessGroup, Work
from .mailbox import Mailbox, Message, MessageKey
from .reduction import ReduceOp, combine
from .shared_memory import SMALL_ARRAY_BYTES, SharedReduction, host_identity, new_segment, open_shared
from .watching import WATCH_SECONDS, Watch, standing

MOST_AHEAD = 256  # messages that a member may have sent and its receivers have not taken
STALL_SECONDS = 0.05  # of waiting in shared memory, before those that are late are asked what they are doing
QUIET_SECONDS = 1.0  # of waiting for messages, likewise: these tell more
MAPPED = 3  # the first step of messages after those with which members map one another's segments

R = TypeVar("R")


def told(method: Callable[..., R]) -> Callable[..., R]:
    """Return a method of a group, for a ``CollectiveCall``, whose failure all members hear of."""

    @functools.wraps(method)
    def run(self: AgentGroup, call: CollectiveCall, *args: Any) -> R:
        try:
            self._failures.begin(self.name, call)
            self._check_strays()
            result = method(self, call, *args)
            self._over.append(call)
            self._check_strays()
            return result
        except WorkerLostError as error:
            first = self._first_lost(error)
            self.give_up(call, first)
            raise first from error.__cause__
        except BaseException as error:
            self.give_up(call, error)
            raise
        finally:
            self._failures.end(self.name, call)
            call.end_turn()

    return run


class AgentGroup(ProcessGroup):
    """Process group over the lanes of an agent.

    Args:
        agent: this process's agent; its worker's rank is the process's rank.
        name, ranks, timeout: see ``ProcessGroup``.
    """

    backend = "rpc"

    def __init__(self, agent: Agent, name: str, ranks: Sequence[int], timeout: float) -> None:
        super().__init__(name, ranks, agent.number, timeout)
        self._agent = agent
        self._mailbox = agent.part(Mailbox)
        self._failures = agent.part(Failures)
        self._numbers = Numbers()
        self._untaken: deque[tuple[CollectiveCall, Future[Any]]] = deque()
        self._over: deque[CollectiveCall] = deque(maxlen=2 * MOST_AHEAD)  # the latest that have ended without an error
        self._sending = threading.Lock()  # guards _untaken
        self._turns = threading.Lock()  # guards _latest
        self._latest: Future[None] | None = None  # completes when the all_reduce that began last is over
        self._shared: SharedReduction | None = None
        self._apart = False  # members are on several hosts, or may not share memory

    def run(self, body: Callable[[], Any], in_background: bool) -> Work | None:
        if not in_background:
            body()
            return None
        work = Work()
        self._agent.threads.functions.submit(lambda: work.complete(body))
        return work

    def begin(self, name: str, like: Any, size: int = 0) -> CollectiveCall:
        with self._turns:
            call = CollectiveCall(self._numbers.next("collective"), (name, like), self.timeout)
            if size and self.size() > 1 and not (self._apart and size <= SMALL_ARRAY_BYTES):
                call.before, self._latest = self._latest, Future()
                call.after = self._latest
        return call

    def missing_in(self, call: CollectiveCall) -> list[str]:
        """Return the names of the workers for whose parts a call waits now."""
        late = dict.fromkeys([*self._mailbox.sources(self.name, call.number), *call.late])
        return [self._agent.peers.at(rank).info.name for rank in late]

    def give_up(self, call: CollectiveCall, error: BaseException) -> None:
        call.end_turn()
        if not isinstance(error, (CollectiveError, WorkerLostError, AgentClosedError)):
            error = CollectiveError(
                f"{self._member(self.index)} gave up {call} of group {self.name!r}: {type(error).__name__}: {error}"
            )
        self._failures.tell(self.ranks, self.name, call.number, error)

    @told
    def all_gather(self, call: CollectiveCall, content: Any) -> list[Any]:
        return self._gather_all(call, content)

    def _gather_all(self, call: CollectiveCall, content: Any, step: int = 0) -> list[Any]:
        parts = self._exchange(call, dict.fromkeys(self._others(), content), self._others(), step)
        return self._in_order(parts, content)

    @told
    def all_reduce(self, call: CollectiveCall, array: Array, op: ReduceOp) -> None:
        if call.after is None:
            self._reduce_by_messages(call, array, op)
            return
        self._await_turn(call)
        if self._apart:
            self._reduce_by_messages(call, array, op)
        elif not self._reduce_in_shared_memory(call, array, op):
            self._reduce_by_messages(call, array, op, MAPPED)

    def _await_turn(self, call: CollectiveCall) -> None:
        before, call.before = call.before, None
        if before is None or before.done():
            return
        try:
            before.wait(call.left() + 2 * WATCH_SECONDS)  # its own deadline is earlier, and then it asks whom to blame
        except TimeoutError:
            raise CollectiveTimeoutError(
                f"{call} of group {self.name!r} waited {self.timeout:g} s for an all_reduce that was begun before it"
            ) from None

    def _reduce_in_shared_memory(self, call: CollectiveCall, array: Array, op: ReduceOp) -> bool:
        """Combine the arrays; return whether members are on one host, so that it could be done."""

        def reduce(shared: SharedReduction | None) -> tuple[int, str] | None:
            self._shared, self._apart = shared, shared is None
            if shared is None:
                return None
            return shared.all_reduce(call.number, str(call), array, op, self._check(call))

        try:
            other = reduce(self._shared or self._map_segments(call))
        except _Unmapped:
            other = reduce(self._map_segments(call))
        if other is not None:
            raise self._different(call, self.ranks[other[0]], other[1])
        return not self._apart

    def _watch(self, call: CollectiveCall, first: float) -> Watch:
        return Watch(
            self._agent, self.name, call, first, lambda rank, theirs: self._different(call, rank, called(theirs))
        )

    def _check(self, call: CollectiveCall) -> Callable[[list[int], float], None]:
        """Return a check of those that a call waits for in shared memory."""
        watch = self._watch(call, STALL_SECONDS)

        def check(members: list[int], seconds: float) -> None:
            call.late = [self.ranks[member] for member in members]
            if watch.look(call.late, seconds):
                self._look_for_messages(call)
            if not call.left():
                raise self._missing(call, watch, call.late)

        return check

    def _look_for_messages(self, call: CollectiveCall) -> None:
        """Look whether members that are late in shared memory send messages instead.

        Raises:
            CollectiveError: they called another collective.
            _Unmapped: their mapping of segments failed in an earlier call.
        """
        messages = self._mailbox.waiting(self.name, call.number)
        for key, message in messages:
            self._open(call, key.source, message)
        if messages:
            raise _Unmapped

    def _check_strays(self) -> None:
        """Look for messages of collectives that are over here: those who sent them called something else.

        If their sender has raised that error, and only the news of it is late, this collective need not fail.

        Raises:
            CollectiveError: there is a message, and its sender knows of no error.
        """
        for key, message in self._mailbox.waiting(self.name):
            for call in [each for each in tuple(self._over) if each.number == key.place]:
                known = self._failures.ask(key.source, self.name, call.number, WATCH_SECONDS)
                error = self._different(call, key.source, called(message.signature))
                self._mailbox.fail(self.name, call.number, error)
                if standing(known).failure is None:
                    raise copy_error(error)  # the mailbox's would keep this thread's frames

    def _map_segments(self, call: CollectiveCall) -> SharedReduction | None:
        """Let all members map one another's segments; ``None`` if they are on several hosts, or one may not."""
        self._shared = None  # those of an earlier mapping that others do not have
        host = host_identity()
        if host is None or any(each != host for each in self._gather_all(call, host)):
            return None
        segment = new_segment()
        mine = (os.getpid(), segment.fd, segment.identity)
        addresses = self._exchange(call, dict.fromkeys(self._others(), mine), self._others(), 1)
        opened = {other: open_shared(Address(*address)) for other, address in addresses.items()}
        segments = self._in_order(opened, segment)
        mapped = all(self._gather_all(call, all(each is not None for each in segments), 2))
        for each in segments:
            if each is not None:
                each.close_descriptor()
        return SharedReduction(segments, self.index) if mapped else None

    def _reduce_by_messages(self, call: CollectiveCall, array: Array, op: ReduceOp, step: int = 0) -> None:
        if array.nbytes <= SMALL_ARRAY_BYTES:
            parts = self._gather_all(call, array, step)
            parts[0] = parts[0] if self.index else array.copy()
            array[:] = combine(parts, op)
            return
        chunks = np.array_split(array, self.size())
        pieces = self._exchange(call, dict(enumerate(chunks)), self._others(), step)
        own = combine(self._in_order(pieces, chunks[self.index]), op)
        combined = self._gather_all(call, own, step + 1)
        for chunk, part in zip(chunks, combined, strict=True):
            if part is not chunk:
                chunk[:] = part

    @told
    def broadcast(self, call: CollectiveCall, content: Any, source: int) -> Any:
        # A binomial tree: who has it gives it to the member at half of the distance of the step before.
        place = (self.index - source) % self.size()
        step = 1
        while step < self.size():
            step *= 2
        while step > 1:
            step //= 2
            if place % (2 * step) == 0 and place + step < self.size():
                self._exchange(call, {(self.index + step) % self.size(): content}, ())
            elif place % (2 * step) == step:
                giver = (self.index - step) % self.size()
                content = self._exchange(call, {}, (giver,))[giver]
        return content

    @told
    def reduce(self, call: CollectiveCall, array: Array, op: ReduceOp, target: int) -> Array | None:
        parts = self._gather_at(call, array, target)
        if parts is None:
            return None
        parts[0] = parts[0].copy() if target == 0 else parts[0]
        return combine(parts, op)

    @told
    def gather(self, call: CollectiveCall, content: Any, target: int) -> list[Any] | None:
        return self._gather_at(call, content, target)

    def _gather_at(self, call: CollectiveCall, content: Any, target: int) -> list[Any] | None:
        if self.index != target:
            self._exchange(call, {target: content}, ())
            return None
        return self._in_order(self._exchange(call, {}, self._others()), content)

    @told
    def scatter(self, call: CollectiveCall, contents: Sequence[Any] | None, source: int) -> Any:
        if self.index != source:
            return self._exchange(call, {}, (source,))[source]
        assert contents is not None
        self._exchange(call, dict(enumerate(contents)), ())
        return contents[source]

    @told
    def all_to_all(self, call: CollectiveCall, contents: Sequence[Any]) -> list[Any]:
        return self._exchange_all(call, contents)

    def _exchange_all(self, call: CollectiveCall, contents: Sequence[Any]) -> list[Any]:
        parts = self._exchange(call, dict(enumerate(contents)), self._others())
        return self._in_order(parts, contents[self.index])

    @told
    def reduce_scatter(self, call: CollectiveCall, arrays: Sequence[Array], op: ReduceOp) -> Array:
        parts = self._exchange_all(call, arrays)
        parts[0] = parts[0] if self.index else parts[0].copy()
        return combine(parts, op)

    def send(self, content: Any, target: int, tag: int) -> None:
        number = ("message", tag, self._numbers.next((target, tag)))
        self._send(CollectiveCall(number, ("send", None), self.timeout), target, content, 0)

    def receive(self, source: int, tag: int) -> Any:
        number = ("message", tag, self._numbers.next(("from", source, tag)))
        call = CollectiveCall(number, ("send", None), self.timeout)
        return self._exchange(call, {}, (source,))[source]

    def close(self) -> None:
        self._mailbox.forget(self.name)
        self._shared = None

    # -- exchanges

    def _others(self) -> list[int]:
        return [index for index in range(self.size()) if index != self.index]

    def _in_order(self, parts: Mapping[int, Any], own: Any) -> list[Any]:
        return [own if index == self.index else parts[index] for index in range(self.size())]

    def _exchange(
        self, call: CollectiveCall, outgoing: Mapping[int, Any], sources: Iterable[int], step: int = 0
    ) -> dict[int, Any]:
        """Send parts to members, and return those of ``sources``."""
        for other, content in outgoing.items():
            if other != self.index:
                self._send(call, other, content, step)
        return self._receive(call, sources, step)

    def _send(self, call: CollectiveCall, target: int, content: Any, step: int) -> None:
        self._settle(call)
        what = f"a part of {call} for {self._member(target)}"
        key = MessageKey(self.name, self.ranks[self.index], call.number, step)
        sent = self._mailbox.send(
            self.ranks[target], key, Message(call.signature, content), max(call.left(), 1e-3), what
        )
        with self._sending:
            self._untaken.append((call, sent))

    def _settle(self, call: CollectiveCall) -> None:
        """Forget messages that were taken, and wait for the oldest while there are too many.

        An error is of the call that sends next, which is the first that can tell it. Collectives that failed have told theirs,
        and one that still sends learns of whom it waits for in vain when it waits.
        """
        with self._sending:
            settled = []
            while self._untaken and (
                len(self._untaken) > MOST_AHEAD or (self._untaken[0][1].done() and self._untaken[0][0] is not call)
            ):
                settled.append(self._untaken.popleft())
        for sender, sent in settled:
            try:
                sent.wait()
            except RpcError as error:
                if self._mailbox.failure(self.name, sender.number) is not None:
                    continue
                if not isinstance(error, RpcTimeoutError):
                    raise
                raise CollectiveTimeoutError(
                    f"a message of group {self.name!r} was not taken in time: {error}"
                ) from None

    def _receive(self, call: CollectiveCall, sources: Iterable[int], step: int) -> dict[int, Any]:
        keys = {source: MessageKey(self.name, self.ranks[source], call.number, step) for source in sources}
        futures = {source: self._mailbox.take(key) for source, key in keys.items()}
        try:
            self._await(call, {self.ranks[source]: future for source, future in futures.items()})
        finally:
            for key in keys.values():
                self._mailbox.cancel(key)
        return {source: self._open(call, self.ranks[source], future.value()) for source, future in futures.items()}

    def _await(self, call: CollectiveCall, futures: Mapping[int, Future[Any]]) -> None:
        """Wait for the messages of some ranks."""
        watch, start, seconds = None, time.monotonic(), QUIET_SECONDS
        while True:
            try:
                wait_all(futures.values(), min(call.left(), seconds))
                return
            except CollectiveError:  # another member's time-out
                raise
            except TimeoutError:
                late = [rank for rank, future in futures.items() if not future.done()]
            watch = watch or self._watch(call, QUIET_SECONDS)
            watch.look(late, time.monotonic() - start)
            if late and not call.left():
                raise self._missing(call, watch, late)
            seconds = WATCH_SECONDS

    def _first_lost(self, error: WorkerLostError) -> WorkerLostError:
        """Return the error of the member that was lost first: others have left because of that."""
        gone = [peer for peer in self._agent.peers.gone() if peer.number in self.ranks]
        first = gone[0].info.name if error.worker in [peer.info.name for peer in gone] else error.worker
        return error if first == error.worker else gone[0].lost_error()

    def _missing(self, call: CollectiveCall, watch: Watch, late: Sequence[int]) -> CollectiveTimeoutError:
        named = ", ".join(self._member(self.ranks.index(rank)) for rank in watch.blamed(late))
        return CollectiveTimeoutError(
            f"{call} of group {self.name!r} waited {self.timeout:g} s in vain for {named}: "
            "call it on all ranks of the group, in the same order, or give the group a longer timeout="
        )

    def _open(self, call: CollectiveCall, rank: int, message: Message) -> Any:
        if tuple(message.signature) != call.signature:
            raise self._different(call, rank, called(message.signature))
        return message.content

    def _different(self, call: CollectiveCall, rank: int, theirs: str) -> CollectiveError:
        return CollectiveError(
            f"{self._member(self.index)} called {call} where {self._member(self.ranks.index(rank))} called {theirs}, in group "
            f"{self.name!r}: all ranks must call the same collectives in the same order, with equal shapes and dtypes"
        )

    def _member(self, index: int) -> str:
        return f"rank {self.ranks[index]} ({self._agent.peers.at(self.ranks[index]).info.name!r})"


class _Unmapped(Exception):
    """Another member has not mapped the segments: its part in mapping them failed."""


# A thread in a collective has a frame of it, whose ``self`` is the group.
COLLECTIVE_CODE = AgentGroup.all_reduce.__code__
