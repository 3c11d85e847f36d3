"""Process groups over the agent's lanes.

Every collective is one or two *exchanges*: each member sends parts to others and takes the parts that others sent to it, all
directly. A large ``all_reduce`` first gives each member one chunk of all arrays to combine, then everybody the combined chunks:
the same number of bytes as a ring, in 2 steps instead of 2 (n - 1). Parts are combined in the order of the members, so that all
have the same result, to the bit. Members on one host do large ``all_reduce``s in shared memory instead.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.errors import CollectiveError, CollectiveTimeoutError, RpcTimeoutError
from ..core.extend import Array
from ..core.futures import Future, wait_all
from ..core.shared_memory import Address
from ..rpc.extend import Agent
from .group import Numbers, ProcessGroup, Work
from .mailbox import Key, Mailbox, Message
from .reduction import ReduceOp, combine
from .shared_memory import SharedReduction, host_identity, new_segment, open_shared

SMALL_BYTES = 64 * 1024  # an array up to this size goes whole to everybody
MOST_AHEAD = 256  # messages that a member may have sent and its receivers have not taken


class CollectiveCall:
    """One collective, as one member sees it: its number, how it was called, and until when it waits.

    A large ``all_reduce`` has a turn: it completes ``after`` when it is over, and waits for that of the one before.
    """

    __slots__ = ("after", "before", "deadline", "number", "signature")

    def __init__(self, number: Any, signature: tuple[str, Any], deadline: float) -> None:
        self.number = number
        self.signature = signature
        self.deadline = deadline
        self.before: Future[None] | None = None
        self.after: Future[None] | None = None

    def __str__(self) -> str:
        name, like = self.signature
        return f"{name}({like})" if like is not None else name


class AgentGroup(ProcessGroup):
    """Process group over the lanes of an agent.

    Args:
        agent: this process's agent; its worker's rank is the process's rank.
        name, ranks, timeout: see ``ProcessGroup``.
    """

    backend = "rpc"

    def __init__(self, agent: Agent, name: str, ranks: Sequence[int], timeout: float) -> None:
        super().__init__(name, ranks, agent.info().id, timeout)
        self._agent = agent
        self._mailbox = agent.part(Mailbox)
        self._numbers = Numbers()
        self._untaken: deque[Future[Any]] = deque()
        self._turns = threading.Lock()  # guards _latest
        self._latest: Future[None] | None = None  # completes when the large all_reduce that began last is over
        self._shared: SharedReduction | None = None
        self._asked = False  # whether all members are on one host is known

    def run(self, body: Callable[[], Any], in_background: bool) -> Work | None:
        if not in_background:
            body()
            return None
        work = Work()
        self._agent.threads.functions.submit(lambda: work.complete(body))
        return work

    def begin(self, name: str, like: Any, size: int = 0) -> CollectiveCall:
        while self._untaken and self._untaken[0].done():
            self._settle()
        with self._turns:
            call = CollectiveCall(self._numbers.take("collective"), (name, like), time.monotonic() + self.timeout)
            if size > SMALL_BYTES and self.size() > 1:
                call.before, self._latest = self._latest, Future()
                call.after = self._latest
        return call

    def all_gather(self, call: CollectiveCall, content: Any) -> list[Any]:
        parts = self._exchange(call, dict.fromkeys(self._others(), content), self._others())
        return self._in_order(parts, content)

    def all_reduce(self, call: CollectiveCall, array: Array, op: ReduceOp) -> None:
        if array.nbytes <= SMALL_BYTES:
            parts = self.all_gather(call, array)
            parts[0] = parts[0] if self.index else array.copy()
            array[:] = combine(parts, op)
            return
        if call.after is None:
            self._reduce_chunks(call, array, op)
            return
        try:
            self._in_turn(call, array, op)
        finally:
            call.after.set_result(None)

    def _in_turn(self, call: CollectiveCall, array: Array, op: ReduceOp) -> None:
        self._await_turn(call)
        if not self._asked:
            self._shared = self._map_segments(call)
            self._asked = True
        if self._shared is None:
            self._reduce_chunks(call, array, op)
            return

        def check(late: list[int]) -> None:
            for member in late:  # one that is not lost may be late because another is
                if (peer := self._agent.peers.at(self.ranks[member])).gone:
                    raise peer.lost_error()
            if time.monotonic() > call.deadline:
                raise self._missing(call, late)

        self._shared.all_reduce(array, op, lambda slices: max(self.all_gather(call, slices)), check)

    def _await_turn(self, call: CollectiveCall) -> None:
        before, call.before = call.before, None
        try:
            if before is not None:
                before.wait(max(call.deadline - time.monotonic(), 0.0))
        except TimeoutError:
            raise CollectiveTimeoutError(
                f"{call} of group {self.name!r} waited {self.timeout:g} s for an all_reduce that was begun before it"
            ) from None

    def _map_segments(self, call: CollectiveCall) -> SharedReduction | None:
        """Let all members map one another's segments; ``None`` if they are on several hosts, or one may not."""
        host = host_identity()
        hosts = self._in_order(self._exchange(call, dict.fromkeys(self._others(), host), self._others(), step=2), host)
        if host is None or any(each != host for each in hosts):
            return None
        segment = new_segment()
        mine = (os.getpid(), segment.fd, segment.identity)
        addresses = self._exchange(call, dict.fromkeys(self._others(), mine), self._others(), step=3)
        opened = {other: open_shared(Address(*address)) for other, address in addresses.items()}
        segments = self._in_order(opened, segment)
        mapped = all(each is not None for each in segments)
        told = self._exchange(call, dict.fromkeys(self._others(), mapped), self._others(), step=4)
        for each in segments:
            if each is not None:
                each.close_descriptor()
        return SharedReduction(segments, self.index) if mapped and all(told.values()) else None

    def _reduce_chunks(self, call: CollectiveCall, array: Array, op: ReduceOp) -> None:
        chunks = np.array_split(array, self.size())
        pieces = self._exchange(call, dict(enumerate(chunks)), self._others())
        own = combine(self._in_order(pieces, chunks[self.index]), op)
        combined = self._exchange(call, dict.fromkeys(self._others(), own), self._others(), step=1)
        for chunk, part in zip(chunks, self._in_order(combined, own), strict=True):
            if part is not chunk:
                chunk[:] = part

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

    def reduce(self, call: CollectiveCall, array: Array, op: ReduceOp, target: int) -> Array | None:
        parts = self.gather(call, array, target)
        if parts is None:
            return None
        parts[0] = parts[0].copy() if target == 0 else parts[0]
        return combine(parts, op)

    def gather(self, call: CollectiveCall, content: Any, target: int) -> list[Any] | None:
        if self.index != target:
            self._exchange(call, {target: content}, ())
            return None
        return self._in_order(self._exchange(call, {}, self._others()), content)

    def scatter(self, call: CollectiveCall, contents: Sequence[Any] | None, source: int) -> Any:
        if self.index != source:
            return self._exchange(call, {}, (source,))[source]
        assert contents is not None
        self._exchange(call, dict(enumerate(contents)), ())
        return contents[source]

    def all_to_all(self, call: CollectiveCall, contents: Sequence[Any]) -> list[Any]:
        parts = self._exchange(call, dict(enumerate(contents)), self._others())
        return self._in_order(parts, contents[self.index])

    def reduce_scatter(self, call: CollectiveCall, arrays: Sequence[Array], op: ReduceOp) -> Array:
        parts = self.all_to_all(call, arrays)
        parts[0] = parts[0] if self.index else parts[0].copy()
        return combine(parts, op)

    def send(self, content: Any, target: int, tag: int) -> None:
        number = ("message", tag, self._numbers.take((target, tag)))
        self._send(CollectiveCall(number, ("send", None), time.monotonic() + self.timeout), target, content, 0)

    def receive(self, source: int, tag: int) -> Any:
        number = ("message", tag, self._numbers.take(("from", source, tag)))
        call = CollectiveCall(number, ("send", None), time.monotonic() + self.timeout)
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
        while len(self._untaken) > MOST_AHEAD:
            self._settle()
        seconds = max(call.deadline - time.monotonic(), 1e-3)
        what = f"a part of {call} for {self._member(target)}"
        key = Key(self.name, self.ranks[self.index], call.number, step)
        self._untaken.append(
            self._mailbox.send(self.ranks[target], key, Message(call.signature, content), seconds, what)
        )

    def _settle(self) -> None:
        """Wait until the oldest message was taken. An error of its is this call's, which is the first that can tell it."""
        try:
            self._untaken.popleft().wait()
        except RpcTimeoutError as error:
            raise CollectiveTimeoutError(f"a message of group {self.name!r} was not taken in time: {error}") from None

    def _receive(self, call: CollectiveCall, sources: Iterable[int], step: int) -> dict[int, Any]:
        keys = {source: Key(self.name, self.ranks[source], call.number, step) for source in sources}
        futures = {source: self._mailbox.take(key) for source, key in keys.items()}
        try:
            messages = wait_all(futures.values(), max(call.deadline - time.monotonic(), 0.0))
        except TimeoutError:
            missing = [source for source, future in futures.items() if not future.done()]
            raise self._missing(call, missing) from None
        finally:
            for key in keys.values():
                self._mailbox.cancel(key)
        return {source: self._open(call, source, message) for source, message in zip(futures, messages, strict=True)}

    def _missing(self, call: CollectiveCall, members: Iterable[int]) -> CollectiveTimeoutError:
        return CollectiveTimeoutError(
            f"{call} of group {self.name!r} waited {self.timeout:g} s in vain for {', '.join(map(self._member, members))}: "
            "call it on all ranks of the group, in the same order, or give the group a longer timeout="
        )

    def _open(self, call: CollectiveCall, source: int, message: Message) -> Any:
        if tuple(message.signature) != call.signature:
            theirs = CollectiveCall(0, tuple(message.signature), 0.0)
            raise CollectiveError(
                f"{self._member(self.index)} called {call} where {self._member(source)} called {theirs}, in group "
                f"{self.name!r}: all ranks must call the same collectives in the same order, with equal shapes and dtypes"
            )
        return message.content

    def _member(self, index: int) -> str:
        return f"rank {self.ranks[index]} ({self._agent.peers.at(self.ranks[index]).info.name!r})"
