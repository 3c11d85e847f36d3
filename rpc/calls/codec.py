"""Codec of one agent: turns bodies of messages into pickles and tables and back, and shows messages to the interceptors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.errors import SerializationError
from ..wire.bare import pack_bare
from ..wire.failures import describe_failure
from ..wire.header import Flag
from ..wire.messages import Incoming, Interceptor, Outgoing
from ..wire.payload import Labels, make_tensors, pack, pack_pickled, unpack

if TYPE_CHECKING:
    from ..links.peer import Peer


def _too_large(kind: str) -> SerializationError:
    return SerializationError(
        f"the call raised {kind}, which is larger than GrpcRpcBackendOptions(max_message_bytes=) of the callee; raise it there"
    )


def _always() -> bool:
    return True


class Codec:
    """Packs and opens the messages of one agent.

    Args:
        limit: size in bytes of the largest message that is sent.
        worker: name of this worker, for errors.

    Attributes:
        interceptors: they see each message, in this order.
        answering: numbers of the interceptors that answer.
        on_tensors: called with a message with tensors that no interceptor has to see.
        reference_types: types of the objects that travel as references, by an interceptor.
    """

    def __init__(self, limit: int, worker: str) -> None:
        self.limit = limit
        self._worker = worker
        self.interceptors: tuple[Interceptor, ...] = ()
        self.on_tensors: Callable[[Outgoing], object] | None = None
        self.reference_types: tuple[type, ...] = ()
        self._set_hooks()

    def intercept(self, *interceptors: Interceptor) -> None:
        """Let these interceptors see every message, in this order. They replace the former ones."""
        self.interceptors = interceptors
        self._set_hooks()

    def _set_hooks(self) -> None:
        # Hot: hooks that an interceptor does not override are not called.
        self._sending = [each for each in self.interceptors if type(each).sending is not Interceptor.sending]
        self._asked = [each.needs.get if each.needs else _always for each in self._sending if not each.needs_references]
        self._arrived = self._overridden("arrived")
        self._opening = self._overridden("opening")
        self._served = self._overridden("served")
        self._delivered = self._overridden("delivered")
        self._not_delivered = self._overridden("not_delivered")
        self.answering = {each.number for each in self.interceptors if each.answers}
        self._plain = {each.number for each in self.interceptors if each.plain}

    def _overridden(self, hook: str) -> dict[int, Callable[[Any], Any]]:
        base = getattr(Interceptor, hook)
        return {each.number: getattr(each, hook) for each in self.interceptors if getattr(type(each), hook) is not base}

    def pack(self, message: Outgoing, body: Any, peer: Peer, labels: Labels) -> None:
        """Put ``body`` into a message.

        Args:
            message: gets the pickle and the tables.
            body: captured before this returns.
            peer: the receiver.
            labels: names the parts of the body in error messages.

        Raises:
            SerializationError: it cannot be sent, or is too large.
        """
        if not pack_bare(message, body, self.limit):
            known = self.reference_types
            pack_pickled(message, body, known, peer.same_main, labels, self.limit, peer.versions)

    def pack_failure(self, reply: Outgoing, error: BaseException, peer: Peer) -> None:
        """Put an exception into an answer; one that is too large is replaced by a small one.

        Args:
            reply: the answer.
            error: the exception. Its class travels by value only to a worker with the same Python version.
            peer: the receiver.
        """
        reply.flags |= Flag.ERROR
        description = describe_failure(error, self._worker, not peer.versions)
        if sum(len(part) for part in description if part) > self.limit:
            description = describe_failure(_too_large(description[1]), self._worker)
        # Without a limit, because an exception that is too large was replaced above.
        pack(reply, description, (), True, lambda body: [("the exception", body)], sys.maxsize)
        reply.flags &= ~Flag.PLAIN

    def is_plain(self, message: Incoming) -> bool:
        """Return whether opening a message runs no user code, so that a reader's thread may do it."""
        return bool(message.flags & Flag.PLAIN) and (not message.extras or message.extras.keys() <= self._plain)

    def open(self, message: Incoming) -> Any:
        """Return the body of a message that arrived, unpickled.

        Raises:
            SerializationError: it cannot be opened here.
        """
        if message.attached.problem:
            raise SerializationError(message.attached.problem)
        if message.flags & Flag.TABLES:
            make_tensors(message)
        for number in message.extras:
            if opening := self._opening.get(number):
                opening(message)
        return unpack(message, self._worker)

    # -- hooks of the interceptors, in the order of a message's life

    def speaks(self) -> bool:
        """Return whether an interceptor must now see every message that leaves, also one without references."""
        for asked in self._asked:  # noqa: SIM110  # a generator costs more than all the rest
            if asked():
                return True
        return False

    def sending(self, message: Outgoing) -> None:
        """Show a message that leaves to the interceptors. If one raises, those before it are told that it did not leave."""
        attached = message.attached
        if not (attached.references or attached.notes or self.speaks()):
            if attached.tensors and self.on_tensors is not None:
                self.on_tensors(message)
            return
        for index, interceptor in enumerate(self._sending):
            if interceptor.needs is not None and not interceptor.needs.get():
                continue
            if interceptor.needs_references and not (attached.references or attached.notes):
                continue
            try:
                interceptor.sending(message)
            except Exception:
                for earlier in self._sending[:index]:
                    earlier.not_delivered(message)
                raise

    def arrived(self, message: Incoming) -> bool:
        """Show a message that arrived to its interceptors; return False if one of them says to ignore it."""
        valid = True
        for number in message.extras:
            if arrived := self._arrived.get(number):
                valid = arrived(message) and valid
        return valid

    def served(self, message: Incoming) -> None:
        """Tell its interceptors that a request was answered, or dropped."""
        for number in message.extras:
            if served := self._served.get(number):
                served(message)

    def delivered(self, message: Outgoing) -> None:
        """Tell its interceptors that a message has arrived."""
        for number in message.attached.extras:
            if delivered := self._delivered.get(number):
                delivered(message)

    def not_delivered(self, message: Outgoing) -> None:
        """Tell its interceptors that a message did not go out, or may not have arrived."""
        for number in message.attached.extras:
            if not_delivered := self._not_delivered.get(number):
                not_delivered(message)
