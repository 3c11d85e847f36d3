"""References in messages: forked when a message leaves, adopted when it arrives, before anything in it is unpickled."""

from __future__ import annotations

from ..rpc.extend import Flag, Incoming, Interceptor, Outgoing
from .context import NUMBER, RRefContext
from .rref import RRef
from .transfers import Transfer, decode_transfer, encode_transfer


class ReferenceInterceptor(Interceptor):
    """Gives each message with references a transfer."""

    number = NUMBER

    def __init__(self, context: RRefContext) -> None:
        self.context = context

    def sending(self, message: Outgoing) -> None:
        """Fork every reference in the message. ``remote`` made the transfer of a creating call, which has none otherwise."""
        transfer: Transfer | None = message.notes.get(NUMBER)
        if transfer is None:
            if not message.references:
                return
            transfer = Transfer(self.context.key(message.to))
        transfer.forks = [reference.sendable_fork(self.context) for reference in message.references]
        self.context.send(transfer)
        if transfer.creates:
            message.flags |= Flag.KEEP  # also when it is late: others may know of the reference by then
        message.notes[NUMBER] = transfer
        message.extras[NUMBER] = encode_transfer(transfer)

    def arrived(self, message: Incoming) -> bool:
        """Adopt the references; False for a message that its sender has cancelled."""
        extra = message.extras.get(NUMBER)
        if extra is None:
            return True
        transfer = decode_transfer(extra, self.context.key(message.sender))
        self.context.receive(transfer)
        message.references = [RRef._of(self.context, fork) for fork in transfer.forks]
        return transfer.adopted

    def delivered(self, message: Outgoing) -> None:
        """Note that the receiver has adopted the references."""
        transfer = message.notes.pop(NUMBER, None)
        if transfer is not None:
            self.context.delivered(transfer)

    def not_delivered(self, message: Outgoing) -> None:
        """Take the references back, unless they arrived after all."""
        transfer = message.notes.pop(NUMBER, None)
        if transfer is not None:
            self.context.not_delivered(transfer)
