"""``Gathered``: the objects of a complete round, on their way from the leader to the members.

They are packed once. Small ones are the leader's answer to each member. If all answers together would be large, one mesh call
carries the objects: few copies leave the leader, and members of one machine share the memory of large arrays. The leader's
answers then say only that the objects come so. Tensors that require grad, and references, stay in answers: gradients and
counts follow the way of each answer.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.futures import Future, complete_once
from ..functions.calling import call_function, label_parts, request_body
from ..wire.bundle import Bundle, Content

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..agent import Agent
    from ..calls.caller import Caller
    from ..links.peer import Peer
    from ..meshes.value_mesh import ValueMesh
    from ..threads.timers import Timers
    from .rounds import Contribution, Group

LARGE_BYTES = 1024 * 1024  # of all answers together, from which the tree has them
FEWEST_IN_TREE = 3  # members beside the leader, with fewer it sends no fewer copies
FAILURE_SECONDS = 5.0  # to tell a member that its objects do not come
BY_TREE = Bundle(b"", ())  # the answer to a member whose objects come over the tree


class Gathered:
    """Objects of a complete round.

    Args:
        group: names of the members; empty for all workers.
        offers: those of the round, by the member's name.
    """

    def __init__(self, group: Group, offers: Mapping[str, Contribution]) -> None:
        self._group = group
        self._objects = {name: offer.value for name, offer in offers.items()}
        self._tickets = {name: offer.ticket for name, offer in offers.items()}
        times = [offer.seconds for offer in offers.values()]
        self._seconds = max(times) if all(times) else 0.0  # none waits longer
        self._lock = threading.Lock()
        self._answer: Bundle | None = None

    def answer(self, agent: Agent, name: str, deliver: Callable[..., object], fail: Callable[..., object]) -> Any:
        """Return what the leader answers to a member: the objects as a bundle, or ``BY_TREE``; the objects to itself.

        Args:
            agent: the leader's.
            name: of the member.
            deliver: function that members run with the group, the tickets and the objects, which come over the tree.
            fail: function that a member runs with the group, its ticket and an error if they cannot come.

        Raises:
            SerializationError: an object cannot be sent on.
        """
        if name == agent.name:
            return self._objects
        with self._lock:
            if self._answer is None:
                content = self._packed(agent, deliver)
                if by_tree := self._is_large(content):
                    agent.new_context().run(self._send, agent, content, fail)
                self._answer = BY_TREE if by_tree else Bundle(b"", (content,))
        return self._answer

    def _packed(self, agent: Agent, deliver: Callable[..., object]) -> Content:
        peers = [agent.peers.find(name) for name in self._tickets if name != agent.name]
        strict = next((peer for peer in peers if not peer.same_main), peers[0])
        versions = next((peer.versions for peer in peers if peer.versions), "")
        body, _ = request_body(strict, deliver, (self._group, self._tickets, self._objects), None)
        return agent.codec.pack_content(body, strict.same_main, versions, label_parts)

    def _is_large(self, content: Content) -> bool:
        others = len(self._tickets) - 1
        if others < FEWEST_IN_TREE or content.size() * others < LARGE_BYTES or content.references:
            return False
        return not any(tensor.requires_grad for tensor in content.tensors)

    def _send(self, agent: Agent, content: Content, fail: Callable[..., object]) -> None:
        from ..meshes.mesh import mesh  # here, because few gatherings are large

        members = mesh([name for name in self._tickets if name != agent.name])
        values = members.begin_packed(content, self._seconds, "_all_gather")
        values.future.add_done_callback(lambda _: self._tell(agent, values, fail))

    def _tell(self, agent: Agent, values: ValueMesh[Any], fail: Callable[..., object]) -> None:
        for name, error in values.errors().items():
            with contextlib.suppress(RpcError):  # it is lost
                call_function(agent, name, fail, (self._group, self._tickets[name], error), None, FAILURE_SECONDS)


class ComingObjects:
    """Objects that may come over the tree to one member, for its own calls.

    Args:
        caller: for deadlines.
        timers: the agent's.
    """

    def __init__(self, caller: Caller, timers: Timers) -> None:
        self.caller = caller
        self.timers = timers
        self.expected: dict[tuple[Group, int], Expected] = {}

    def expect(self, key: tuple[Group, int], leader: str, seconds: float) -> Expected:
        """Expect the objects of an own call, until ``forget``.

        Args:
            key: group and ticket of the call.
            leader: name of the group's leader.
            seconds: time-out of the call; 0 for none.
        """
        expected = self.expected[key] = Expected(self, key, leader, seconds)
        return expected

    def arrived(
        self, key: tuple[Group, int], objects: dict[str, Any] | None, error: BaseException | None = None
    ) -> None:
        """Note the objects of an own call, or why they cannot come; those that are not expected any more are dropped.

        Args:
            key: group and ticket of the call.
            objects: by the member's name.
            error: why they cannot come.
        """
        if (expected := self.expected.get(key)) is not None:
            complete_once(expected.objects, objects, error=error)

    def lost(self, peer: Peer) -> None:
        """Fail the calls whose leader is lost."""
        for expected in list(self.expected.values()):
            if expected.leader == peer.info.name:
                complete_once(expected.objects, error=peer.lost_error())


class Expected:
    """Objects of one own call.

    Args:
        coming: those of all calls.
        key, leader, seconds: as for ``ComingObjects.expect``.
    """

    def __init__(self, coming: ComingObjects, key: tuple[Group, int], leader: str, seconds: float) -> None:
        self._coming = coming
        self._key = key
        self._until = coming.timers.now() + seconds if seconds else 0.0
        self.leader = leader
        self.objects: Future[dict[str, Any]] = Future()

    def in_time(self) -> Future[dict[str, Any]]:
        """Return their future, which fails when the time of the call is over."""
        left = max(self._until - self._coming.timers.now(), 1e-3) if self._until else 0.0
        what = f"a call of _all_gather, whose objects are on their way from worker {self.leader!r},"
        return self._coming.caller.waits.with_deadline(self.objects, left, what)

    def forget(self) -> None:
        """Expect them no more."""
        self._coming.expected.pop(self._key, None)


def comes_over_tree(answer: Any) -> bool:
    """Return whether a leader's answer says that the objects come over the tree."""
    return type(answer) is Bundle and not answer.contents


def opened(agent: Agent, answer: Any) -> Any:
    """Return the objects of a leader's answer; what is no bundle, as it is.

    Args:
        agent: the member's.
        answer: from ``Gathered.answer``.
    """
    if type(answer) is not Bundle:
        return answer
    _, (*_, objects), _ = agent.codec.open_content(answer.contents[0])
    return objects
