"""Codec of one agent: turns bodies of messages into pickles and tables and back, and shows messages to the interceptors.

Calls by name, and results, all of whose parts are tensors or plain values, need no pickler of ours (``wire/payload.py``). Most
small calls have only tensors as arguments. They have no pickle: the name of the function is in its place, and the
arguments are the tensors of the table. Plain values are pickled by C code alone; beside tensors, with the places of these. A
body of ``None`` has no bytes. The same holds for the usual arrays of one other library.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.errors import SerializationError
from ...core.extend import Tensor
from ...core.futures import Future
from ..wire.bundle import Bundle, Content, MappedContent, open_bundle
from ..wire.failures import describe_failure
from ..wire.header import Flag, FrameKind
from ..wire.libraries.array_library import LibraryTensor, MissingDeviceError
from ..wire.libraries.registry import MissingLibraryError, usual_libraries
from ..wire.messages import NO_ATTACHMENTS, OF_BUFFERS, Attachments, Incoming, Interceptor, Method, Outgoing
from ..wire.payload import Labels, Opener, pack_pickled
from ..wire.raw_body import RawBody, open_raw, pack_raw
from ..wire.users_code import advice_to_install, users_error
from .guests import can_be_made, make_arrays, name_before, stand_in
from .unready import unready

if TYPE_CHECKING:
    from ..links.peer import Peer
    from ..wire.memory_budget import MemoryBudget


BARE_TYPES = frozenset((type(None), bool, int, float, complex, str, bytes))
LONGEST_BARE = 4096  # characters or bytes of a plain value; longer ones are not copied
MOST_BARE = 64  # parts of a body or of a list in it; one with more is left to the pickler
OURS = (Tensor, LibraryTensor)
PICKLE = 0x80  # first byte of a pickle, and of no name
BareContent: TypeAlias = tuple[bytes, "tuple[Any, ...] | None"]


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
        budget: bound of the memory of arrays that arrive; ``None`` for none.

    Attributes:
        interceptors: they see each message, in this order.
        answering: numbers of the interceptors that answer.
        on_tensors: called with a message with tensors that no interceptor has to see.
        reference_types: types of the objects that travel as references, by an interceptor; the first is that of references.
    """

    def __init__(self, limit: int, worker: str, budget: MemoryBudget | None = None) -> None:
        self.limit = limit
        self.budget = budget
        self._worker = worker
        self.interceptors: tuple[Interceptor, ...] = ()
        self.on_tensors: Callable[[Outgoing], object] | None = None
        self.reference_types: tuple[type, ...] = ()
        self._set_hooks()

    def intercept(self, *interceptors: Interceptor) -> None:
        """Let these interceptors see every message, in this order. They replace the former ones."""
        self.interceptors = interceptors
        self._set_hooks()

    def replace(self, interceptor: Interceptor) -> None:
        """Put an interceptor in the place of the one with its number."""
        number = interceptor.number
        self.intercept(*(interceptor if each.number == number else each for each in self.interceptors))

    def _set_hooks(self) -> None:
        # Hot: hooks that an interceptor does not override are not called.
        self._sending = [each for each in self.interceptors if type(each).sending is not Interceptor.sending]
        self._asked = [each.needs.get if each.needs else _always for each in self._sending if not each.needs_references]
        self._arrived = self._overridden("arrived")
        self._entering = self._overridden("entering")
        self._opening = self._overridden("opening")
        self._served = self._overridden("served")
        self._delivered = self._overridden("delivered")
        self._replaced = self._overridden("replaced")
        self._not_delivered = self._overridden("not_delivered")
        self.answering = {each.number for each in self.interceptors if each.answers}
        self._plain = {each.number for each in self.interceptors if each.plain}

    def _overridden(self, hook: str) -> dict[int, Callable[[Any], Any]]:
        base = getattr(Interceptor, hook)
        return {each.number: getattr(each, hook) for each in self.interceptors if getattr(type(each), hook) is not base}

    def pack(self, message: Outgoing, body: Any, peer: Peer, labels: Labels) -> None:
        """Put ``body`` into a message, and show it to the interceptors.

        Args:
            message: gets the pickle and the tables.
            body: captured before this returns.
            peer: the receiver.
            labels: names the parts of the body in error messages.

        Raises:
            SerializationError: it cannot be sent, or is too large.
        """
        if type(body) is Bundle:
            body.put_into(message, self.limit)
        elif not (pack_raw if type(body) is RawBody else pack_bare)(message, body, self.limit):
            known, devices = self.reference_types, peer.devices
            placed = devices.of_replies if message.kind is FrameKind.REPLY else devices.of_requests
            pack_pickled(message, body, known, peer.same_main, labels, self.limit, peer.versions, placed)
            if any(isinstance(each, Future) for each in message.attached.references):
                message.attached.unready = unready(labels(body))
        self._show(message)

    def pack_content(self, body: Any, same_main: bool, versions: str, labels: Labels) -> Content:
        """Return ``body`` as a content of bundles, which interceptors see when these are sent.

        Args:
            body: not captured: its arrays are the user's.
            same_main: all receivers run the same main script.
            versions: not empty if code cannot travel by value to one of them.
            labels: names the parts of the body in error messages.

        Raises:
            SerializationError: it cannot be sent, or is too large.
        """
        message = Outgoing(Method.MESH, 0, 0.0, -1)
        if not pack_bare(message, body, self.limit):
            pack_pickled(message, body, self.reference_types, same_main, labels, self.limit, versions)
        return Content.of(message)

    def pack_failed(self, error: BaseException, by_value: bool = False) -> Content:
        """Return an exception as a content of bundles.

        Args:
            error: the exception.
            by_value: its class may travel by value, if it has no name that can be imported.
        """
        message = Outgoing(Method.MESH, 0, 0.0, -1)
        self._pack_failure(message, error, by_value)
        return Content.of(message)

    def pack_failure(self, reply: Outgoing, error: BaseException, peer: Peer) -> None:
        """Put an exception into an answer, and show it to the interceptors; a small one in the place of one that is too large.

        Args:
            reply: the answer.
            error: the exception. Its class travels by value only to a worker with the same Python version.
            peer: the receiver.
        """
        self._pack_failure(reply, error, not peer.versions)
        self._show(reply)

    def _pack_failure(self, reply: Outgoing, error: BaseException, by_value: bool) -> None:
        reply.flags |= Flag.ERROR
        description = describe_failure(error, self._worker, by_value)
        if sum(len(part) for part in description if part) > self.limit:
            description = describe_failure(_too_large(description[1]), self._worker)
        # Without a limit, because an exception that is too large was replaced above.
        if not pack_bare(reply, description, sys.maxsize):
            pack_pickled(reply, description, (), True, lambda body: [("the exception", body)], sys.maxsize)
        reply.flags &= ~Flag.PLAIN

    def is_plain(self, message: Incoming) -> bool:
        """Return whether opening a message runs no user code, so that a reader's thread may do it."""
        if not message.flags & Flag.PLAIN or (message.flags & Flag.GUEST and not can_be_made(message)):
            return False
        return not message.extras or message.extras.keys() <= self._plain

    def open(self, message: Incoming) -> Any:
        """Return the body of a message that arrived, unpickled.

        Raises:
            SerializationError: it cannot be opened here; the message names the module or attribute that is missing.
            MemoryBudgetError: there is no room for its arrays.
        """
        attached, flags = message.attached, message.flags
        if attached.problem:
            raise SerializationError(attached.problem)
        if flags & Flag.TABLES:  # the tensors are leaves until an interceptor says otherwise
            if self.budget is not None and message.method not in OF_BUFFERS:
                self.budget.place(attached.arrays)
            attached.tensors = list(map(Tensor, attached.arrays, attached.requires_grad))
        for number in message.extras:
            if opening := self._opening.get(number):
                opening(message)
        try:
            if flags & Flag.RAW:
                return open_raw(message)
            if flags & Flag.GUEST:
                make_arrays(message)
            if flags & Flag.BARE:
                return open_bare(message.pickled, attached.tensors)
            if flags & Flag.BUNDLE:
                return open_bundle(message)
            if flags & Flag.PLAIN and not (attached.tensors or attached.references or attached.buffers):
                return pickle.loads(message.pickled)
            return Opener(message).load()
        except (MissingLibraryError, MissingDeviceError) as error:
            raise SerializationError(f"an array arrived at worker {self._worker!r}, and {error}") from error.__cause__
        except (ImportError, AttributeError) as error:
            raise SerializationError(
                f"worker {self._worker!r} cannot find what a message names: {error}; {advice_to_install(error)}"
                f"define it in a module that every worker can import"
            ) from users_error(error)

    def open_content(self, content: Content) -> Any:
        """Return the body of a content of a bundle, unpickled. Interceptors have seen it with its bundle.

        Raises:
            SerializationError, MemoryBudgetError: as for ``open``.
        """
        flags = content.flags
        if flags & Flag.PLAIN and not (content.tensors or content.references or content.buffers or flags & Flag.GUEST):
            pickled = b"".join(content.pickled)
            return open_bare(pickled, ()) if flags & Flag.BARE else pickle.loads(pickled)
        if self.budget is not None and isinstance(content, MappedContent):
            self.budget.place_tensors(content.mapped())
        return self.open(content.message())

    # -- hooks of the interceptors, in the order of a message's life

    def speaks(self) -> bool:
        """Return whether an interceptor must now see every message that leaves, also one without references."""
        for asked in self._asked:  # noqa: SIM110  # a generator costs more than all the rest
            if asked():
                return True
        return False

    def _show(self, message: Outgoing) -> None:
        """Show a message that leaves to the interceptors. If one raises, those before it are told that it did not leave."""
        attached = message.attached
        if not (attached.references or attached.notes):
            for asked in self._asked:  # ``speaks``, without a call
                if asked():
                    break
            else:
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

    def enter(self, message: Incoming) -> None:
        """Let this context be that of a request, for requests that are made for it before it is opened."""
        for number in message.extras:
            if entering := self._entering.get(number):
                entering(message)

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

    def replaced(self, message: Outgoing) -> None:
        """Tell its interceptors that an answer did not arrive, and another one has taken its place."""
        for number in message.attached.extras:
            if replaced := self._replaced.get(number):
                replaced(message)

    def not_delivered(self, message: Outgoing) -> None:
        """Tell its interceptors that a message did not go out, or may not have arrived."""
        for number in message.attached.extras:
            if not_delivered := self._not_delivered.get(number):
                not_delivered(message)


# -- bodies that need no pickler of ours


def pack_bare(message: Outgoing, body: Any, limit: int) -> bool:
    """Put a body into a message, if it needs no pickler of ours.

    Args:
        message: gets the body.
        body: the name, arguments and keyword arguments of a call, or a result.
        limit: bytes of the largest message.

    Returns:
        False if the body needs the pickler, or may be too large.
    """
    if body is None:
        content: BareContent | None = (b"", ())
    elif type(body) is Tensor or type(body) in usual_libraries:
        content = (b"", (body,))
    elif type(body) is tuple and len(body) == 3 and type(body[0]) is str:
        content = _call(*body)
    else:
        content = (pickle.dumps(body, 5), None) if _are_plain((body,)) else None
    if content is None:
        return False
    pickled, tensors = content
    flags = Flag.PLAIN if tensors is None else Flag.BARE | Flag.PLAIN
    if tensors and type(tensors[0]) in usual_libraries:
        if (found := stand_in(tensors)) is None:
            return False
        flags, pickled, tensors = flags | Flag.GUEST, name_before(found) + pickled, found
    if len(pickled) > limit or (tensors and not _pack_tensors(message, tensors, limit - len(pickled))):
        return False
    message.pickled = (pickled,)
    message.flags |= flags
    return True


def open_bare(pickled: Any, tensors: Sequence[Any]) -> Any:
    """Return the body of a message with ``Flag.BARE``.

    Args:
        pickled: the pickle of the message, or a name.
        tensors: its tensors, in place.
    """
    if not pickled:
        return tensors[0] if tensors else None
    if pickled[0] != PICKLE:
        return str(pickled, "ascii"), tuple(tensors), {}
    name, arguments, named, places = pickle.loads(pickled)
    for place, tensor in zip(places, tensors):
        arguments[place] = tensor
    return name, tuple(arguments), named


def _call(name: str, arguments: Any, named: Any) -> BareContent | None:
    """Return the content of a call, if it has one: its name or pickle, and its tensors (``None`` if it is a plain body)."""
    if type(arguments) is not tuple or type(named) is not dict:
        return None
    places = []  # of tensors
    for place, argument in enumerate(arguments):  # not a comprehension, which costs more than most of these loops
        if type(argument) is Tensor or type(argument) in usual_libraries:
            places.append(place)
    if len(places) == len(arguments) and not named and name and name.isascii():
        return name.encode(), arguments
    rest = list(arguments)
    for place in places:
        rest[place] = None
    if not _are_plain((name, *rest, *named.values())):
        return None
    if not places:
        return pickle.dumps((name, arguments, named), 5), None
    return pickle.dumps((name, rest, named, places), 5), tuple([arguments[place] for place in places])


def _pack_tensors(message: Outgoing, tensors: tuple[Any, ...], limit: int) -> bool:
    size = 0
    if len(tensors) > 1 and len(set(map(id, tensors))) < len(tensors):
        return False  # one object twice: only a pickle keeps it one
    for tensor in tensors:
        if type(tensor) not in OURS or tensor.is_sparse or tensor.__dict__:
            return False
        size += tensor._array.nbytes
    if size > limit:
        return False
    if (attached := message.attached) is NO_ATTACHMENTS:  # else it has notes
        message.attached = attached = Attachments()
    attached.tensors = tensors
    return True


def _are_plain(values: Sequence[Any], lists: bool = True) -> bool:
    """Return whether all are plain: of ``BARE_TYPES``, or lists or tuples of such, and neither long nor many."""
    if len(values) > MOST_BARE:
        return False
    for value in values:
        kind = type(value)
        if kind in BARE_TYPES:
            if (kind is str or kind is bytes) and len(value) > LONGEST_BARE:
                return False
        elif not (lists and (kind is list or kind is tuple) and _are_plain(value, False)):
            return False
    return True
