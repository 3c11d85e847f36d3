"""References in messages: forked when a message leaves, adopted when it arrives, before anything in it is unpickled."""

from __future__ import annotations

from ..rpc.extend import Flag, Incoming, Interceptor, Outgoing
from .context import NUMBER, Creation, RRefContext
from .encoding import decode_carrier, encode_carrier
from .forks import Fork
from .ids import RRefId, WorkerKey
from .numbers import Method
from .protocol import Carrier, How
from .rref import RRef


class ReferenceInterceptor(Interceptor):
    """Knows what the references in a message mean."""

    number = NUMBER

    def __init__(self, context: RRefContext) -> None:
        self.context = context

    def sending(self, message: Outgoing) -> None:
        """Fork every reference in the message; a creating call also makes the new one."""
        creates = message.method == Method.CREATE and NUMBER in message.notes
        if not message.references and not creates:
            return
        to = self._key(message.to)
        forks = [reference.sendable_fork(self.context) for reference in message.references]
        if creates:
            creation: Creation = message.notes[NUMBER]
            creation.fork, carrier = self.context.create(to, forks)
            message.flags |= Flag.KEEP  # also when it is late: others may know of the reference by then
        else:
            carrier = self.context.outgoing(to, forks)
        message.notes[NUMBER] = carrier
        message.extras[NUMBER] = encode_carrier(carrier)

    def arrived(self, message: Incoming) -> bool:
        """Adopt the references; a message that its sender has taken back is ignored."""
        extra = message.extras.get(NUMBER)
        if extra is None:
            return True
        number, entries = decode_carrier(extra)
        forks = self.context.incoming(self._key(message.sender), number, entries)
        if forks is None:
            return False
        message.references = [self._reference(fork) for fork in forks]
        return True

    def delivered(self, message: Outgoing) -> None:
        """The receiver has adopted them."""
        carrier = message.notes.pop(NUMBER, None)
        if isinstance(carrier, Carrier):
            self.context.delivered(carrier)

    def not_delivered(self, message: Outgoing) -> None:
        """Take them back, unless they arrived after all."""
        carrier = message.notes.pop(NUMBER, None)
        if isinstance(carrier, Carrier):
            self.context.not_delivered(carrier)

    def _reference(self, fork: Fork) -> RRef:
        return RRef._of(self.context, fork)

    def _key(self, rank: int) -> WorkerKey:
        return WorkerKey(rank, self.context.agent.peers.at(rank).record.incarnation)


def created_by(message: Incoming) -> RRefId:
    """The id that a creating call asks for."""
    _, entries = decode_carrier(message.extras[NUMBER])
    return next(entry.rref_id for entry in entries if entry.how is How.CREATED)
