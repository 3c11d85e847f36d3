"""``ChildRequests``: the requests of one mesh call to the children of a worker, with the call in them unless they have it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ...core.extend import profiles, record_call
from ..links.link import LinkState
from ..wire.bundle import BUNDLE_FLAGS, Bundle, Content, join
from ..wire.header import Flag
from ..wire.messages import REPEATED, Method
from .alike_bodies import AlikeBodies
from .shared_call import SharedCall, mapping_host

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...core.futures import Future
    from ..agent import Agent
    from ..calls.caller import Prepared
    from ..calls.dispatch import PendingCall
    from ..links.peer import Peer
    from .heads import RequestHead
    from .hop import Hop
    from .relaying import AskChild
    from .tree import Subtree

REQUEST_FLAGS = BUNDLE_FLAGS | Flag.KEEP


class PackedCall(Protocol):
    """Mesh call (``MeshCall``), as its requests have it.

    Attributes:
        head: of the request that brought it.
        packed: the call.
        parts: parts of scattered arguments, by the place in the mesh.
    """

    head: RequestHead
    packed: Content | SharedCall
    parts: Mapping[int, Content]


class ChildRequests:
    """Requests of a worker to the children, for one call.

    Each method is given the call. A reference back to it would be a cycle, and keep its arrays until one is collected.

    Args:
        agent: the agent.
        apart: workers that cannot open this one's segments.
    """

    def __init__(self, agent: Agent, apart: set[int]) -> None:
        self._agent, self._apart = agent, apart
        self._repeated: dict[int, dict[int, Any]] = {}  # by child: note of the requests that repeat the first one
        self._joined: bytes | None = None  # the call, as in the messages to all children

    def make(self, call: PackedCall, hop: Hop, held: int, left: float, over: int, asked: list[Prepared]) -> None:
        """Make a request to a child. Profiles record it, with what returns from the child.

        Args:
            call: the call.
            hop: its future.
            held: how many results of the child are here.
            left, over, asked: as for ``make_alike``.

        Raises:
            Exception: it cannot be made.
        """
        peer = self._agent.peers.by_number[hop.head]
        body = self._body(call, peer, hop.subtree, held, over)
        request = self._begin(call, peer, body, left, hop, asked, None if held else self._repeated.get(hop.head))
        if request.attached.notes and not held:
            self._repeated.setdefault(hop.head, {REPEATED: request.attached.notes})
        hop.request = None if hop.done() else request

    def make_alike(
        self,
        call: PackedCall,
        asks: Sequence[AskChild],
        left: float,
        over: int,
        asked: list[Prepared],
        hop_of: Callable[[Subtree], Hop],
    ) -> tuple[dict[int, Hop], Sequence[AskChild]]:
        """Make small requests that differ in their receivers only, if no interceptor has to see them.

        Args:
            call: the call.
            asks: the children, and how many of their results are here.
            left: seconds until the deadline; 0 for none.
            over: the id below which all calls of the caller are over.
            asked: gets the requests, which are sent later.
            hop_of: makes the future of a request.

        Returns:
            the futures by child, and the other asks.
        """
        peers, caller = self._agent.peers.by_number, self._agent.caller
        hops: dict[int, Hop] = {}
        if len(asks) == 1 or not self._join(call) or profiles.get() or not caller.sends_packed():
            return hops, asks
        shared, host = b"", None
        if isinstance(call.packed, SharedCall):
            try:
                shared, host = call.packed.encode(), mapping_host(self._agent)
            except OSError:  # it is over, as each request will say
                return hops, asks
        bodies, others = AlikeBodies(call.head, over, self._join(call), shared), []
        for ask in asks:
            number, peer = ask.subtree[0].number, peers.get(ask.subtree[0].number)
            ready = peer is not None and peer.link.state is LinkState.OPEN and number not in self._repeated
            if ask.held or peer is None or not ready or (shared and not self._shares(peer, host)):
                others.append(ask)
                continue
            hop = hops[number] = hop_of(ask.subtree)
            made = caller.begin_packed(peer, Method.MESH, REQUEST_FLAGS, bodies.of(ask.subtree), left, hop)
            hop.request = made[0]
            asked.append(made)
        return hops, others

    def _join(self, call: PackedCall) -> bytes:
        """Return the call as bytes, as in the messages to all children; empty if it is long, or something is beside it."""
        if self._joined is None:
            packed = call.packed.rest if isinstance(call.packed, SharedCall) else call.packed
            self._joined = b"" if call.head.parts else join((packed,))
        return self._joined

    def _shares(self, peer: Peer, host: str | None) -> bool:
        """Return whether a child gets the arrays that are in a segment from there.

        Args:
            peer: the child.
            host: from ``mapping_host``.
        """
        return peer.host == host and peer.number not in self._apart

    def _begin(
        self,
        call: PackedCall,
        peer: Peer,
        body: Bundle,
        left: float,
        hop: Hop,
        asked: list[Prepared],
        notes: dict[int, Any] | None,
    ) -> PendingCall:
        begin = partial(
            self._agent.caller.begin, peer, Method.MESH, body, left, hop, notes=notes, future=hop, later=asked
        )
        if not profiles.get():
            return begin()
        made: list[PendingCall] = []

        def request() -> Future[Any]:
            made.append(begin())
            return hop

        record_call(f"mesh#{call.head.name}({self._agent.name} -> {peer.info.name})", request)
        return made[0]

    def _body(self, call: PackedCall, peer: Peer, subtree: Subtree, held: int, over: int) -> Bundle:
        encode, packed = call.head.encode, call.packed
        if held:  # it has the call
            return Bundle(encode(subtree, over, held), (), True)
        parts = [call.parts[member.place] for member in subtree] if call.head.parts else []
        if isinstance(packed, SharedCall):
            if self._shares(peer, mapping_host(self._agent)):
                return Bundle(encode(subtree, over, 0, packed.encode()), [packed.rest, *parts], True)
            packed = packed.content()
        elif not parts:
            return Bundle(encode(subtree, over), (packed,), True, self._join(call))
        return Bundle(encode(subtree, over), [packed, *parts], True)
