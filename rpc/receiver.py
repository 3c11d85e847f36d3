"""Frames that arrive: each is decoded and given to the component that it is for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ..base.errors import SerializationError
from ..core.futures import raised_by_handler
from .calls.server_call import ServerCall
from .lanes.large.scattered import ScatteredFrame
from .links.link import LinkState
from .wire.control import decode_amount, decode_done, decode_goodbye, read_reason
from .wire.frames import decode
from .wire.header import FrameKind
from .wire.messages import Incoming

if TYPE_CHECKING:
    from .calls.caller import Caller
    from .calls.codec import Codec
    from .calls.serving import Server
    from .flow.flow import Flow
    from .lanes.session import Session
    from .links.control_channel import ControlChannel
    from .links.peer import Peer
    from .links.peers import Peers
    from .links.relay import Relay
    from .losses.losses import Losses

logger = logging.getLogger("telegrad.rpc")
GONE = LinkState.GONE


class Receiver:
    """Takes the frames of one agent. All methods are quick and run no user code, because they run in the threads of readers.

    Args:
        peers: the workers of the job.
        codec: shows messages to the interceptors.
        caller: takes replies.
        server: takes requests.
        control: takes control messages and acknowledgements.
        relay: passes frames on to other workers.
        losses: is told of goodbyes and expulsions.
    """

    def __init__(
        self,
        peers: Peers,
        codec: Codec,
        caller: Caller,
        server: Server,
        control: ControlChannel,
        relay: Relay,
        losses: Losses,
    ) -> None:
        self._peers = peers
        self._codec = codec
        self._caller = caller
        self._server = server
        self._control = control
        self._relay = relay
        self._losses = losses

    def received(self, session: Session, frame: Any, owned: bool) -> None:
        """Take a frame. One that cannot be read ends its session.

        Args:
            session: the session that it arrived on.
            frame: its bytes.
            owned: the frame's memory is writable, and nothing else uses it.
        """
        try:
            kind = frame[0]
            if kind == FrameKind.REQUEST:
                self._request(self._peers.by_number[session.number], session, frame, owned)
            elif kind == FrameKind.REPLY:
                self._reply(session, frame, owned)
            elif kind == FrameKind.DONE:
                self._done(session, frame)
            else:
                self._control_frame(self._peers.at(session.number), session, frame)
        except Exception as error:
            if raised_by_handler(error):
                raise
            logger.exception(
                "worker %r closes a connection to worker %r: a frame of %d bytes cannot be read",
                self._peers.me.name,
                self._peers.at(session.number).info.name,
                len(frame),
            )
            session.close()

    def _request(self, peer: Peer, session: Session, frame: Any, owned: bool) -> None:
        link = peer.link
        link.latest = session
        flow: Flow = session.flow
        call = decode(frame, owned, ServerCall(), session)
        if (call.extras and not self._codec.arrived(call)) or (link.state is GONE and not call.must_run):
            flow.used(call.size)
        else:
            self._server.accept(call, peer)

    def _reply(self, session: Session, frame: Any, owned: bool) -> None:
        flow: Flow = session.flow
        reply = decode(frame, owned, Incoming(), session)
        if reply.extras and not self._codec.arrived(reply):
            flow.used(reply.size)
        else:
            self._caller.complete(reply)

    def _done(self, session: Session, frame: Any) -> None:
        self._caller.complete_with_none(decode_done(frame))
        session.flow.used(len(frame))

    def _control_frame(self, peer: Peer, session: Session, frame: Any) -> None:
        kind = frame[0]
        if type(frame) is ScatteredFrame:
            frame = frame.read(0, len(frame))
        if kind == FrameKind.CONTROL:
            self._control.received(peer, frame)
        elif kind == FrameKind.ACKNOWLEDGE:
            self._losses.answered(peer, self._control.acknowledged(peer, frame))
        elif kind == FrameKind.RELAY:
            self._relayed(frame)
        elif kind == FrameKind.CREDIT:
            session.flow.credited(decode_amount(frame))
        elif kind == FrameKind.ASK:
            session.flow.asked(decode_amount(frame))
        elif kind == FrameKind.GOODBYE:
            self._losses.left(peer, *decode_goodbye(frame))
        elif kind == FrameKind.EXPELLED:
            self._losses.expelled(peer, read_reason(frame))
        else:
            raise SerializationError(f"there is no frame of kind {kind}; use one version of telegrad for all workers")

    def _relayed(self, frame: Any) -> None:
        if (arrived := self._relay.received(frame)) is None:
            return
        author, inner = arrived
        try:
            if inner[0] == FrameKind.CONTROL:
                self._control.received(author, inner)
            elif inner[0] == FrameKind.ACKNOWLEDGE:
                self._control.acknowledged(author, inner)
        except Exception:  # the worker that passed the frame on is not to blame: its session stays open
            logger.exception(
                "worker %r drops a frame of worker %r, which cannot be read", self._peers.me.name, author.info.name
            )
