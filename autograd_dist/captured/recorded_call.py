"""``RecordedCall``: what the recording of a step knows of one call of another worker."""

from __future__ import annotations

from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ...capture.extend import Hop, Recorder, Unrecordable, Value, arrived, form, mapped, tensors_of
from ...core.extend import Tensor
from ...rpc.extend import Peer
from ...rref import RRef
from .call import CapturedCall
from .plain import PlainCall
from .plain_parts import form_of

ARGUMENTS = Tensor, bool, int, float, complex, str, bytes, type(None), FunctionType, BuiltinFunctionType, type, RRef


class RecordedCall:
    """Call of another worker in a step that is recorded.

    Args:
        recorder: the recording.
        call: the call in replays.
        args: its arguments.

    Attributes:
        sends: the tensors of the message, when it has left.
        message_id: of the message, if tensors of it require grad; else 0.
        hop: the call in the program, if there is one.
        results: the tensors that it has returned.
        unused: whether the step has not used what the call returned.
        called_at: where the step calls it.

    Raises:
        Unrecordable: an argument is of another kind (``ARGUMENTS``).
    """

    def __init__(self, recorder: Recorder, call: CapturedCall, args: Any) -> None:
        mapped(args, check_plain)
        self._recorder, self.call, self.called_at = recorder, call, recorder.place
        self._given = tensors_of(args)
        self.sends: Sequence[Tensor] | None = None
        self.message_id = 0
        self.hop: Hop | None = None
        self.results: list[Tensor] | None = None
        self.unused = False

    def leaves(self, peer: Peer, tensors: Sequence[Tensor]) -> int:
        """Note that the message leaves; return the number of the part that it calls.

        Args:
            peer: the callee.
            tensors: those of the message.
        """
        self.sends = list(tensors)
        self.call.goes_to(peer)
        return self.call.number

    def sent(self, replay: Any) -> None:
        """Write that the arguments are sent.

        Args:
            replay: the value of the replay; ``None`` if no program is written.

        Raises:
            Unrecordable: they were not sent in this call, or are other tensors.
        """
        if self.sends is None:
            raise Unrecordable("the call of another worker has failed, or its arguments are not there yet")
        if any(not any(each is given for given in self._given) for each in self.sends):
            raise Unrecordable("an argument of the call of another worker is an array of another library")
        self._recorder.keep(self.sends)
        if self._recorder.program is not None:
            self.hop = Hop(self._recorder.program, self.call.callee, self.call.send, replay, self.sends)

    def arrived(self, result: Any, _unused: bool) -> None:
        """Write that the results are taken.

        Args:
            result: what the call has returned.

        Raises:
            Unrecordable: they are no tensors that require grad.
        """
        recorder, results = self._recorder, tensors_of(result)
        if not results or not _only_tensors(result):
            raise Unrecordable("the call of another worker returned something else than tensors, or has failed")
        if not any(each._requires_grad for each in results):
            raise Unrecordable("no result of the call of another worker requires grad")
        self.results = results
        recorder.events.append(("arrived", self.call.place, form(tuple(map(recorder.names.knows, results)), repr)))
        recorder.keep(results)
        self.call.returned([each._array for each in results])
        if self.hop is not None:
            self.hop.arrive(self.call.take, results)
        recorder.names.made(len(recorder.events), results)


class RecordedPlainCall:
    """Call of another worker outside of autograd contexts in a step that is recorded.

    Args:
        recorder: the recording.
        call: the call in replays.
        tensors: those among its arguments.

    Attributes:
        results: the tensors that it has returned.
        unused: whether the step has not used what the call returned.
        called_at: where the step calls it.
    """

    def __init__(self, recorder: Recorder, call: PlainCall, tensors: Sequence[Tensor]) -> None:
        self._recorder, self.call, self._tensors, self.called_at = recorder, call, tensors, recorder.place
        self._sent: Value | None = None
        self.results: list[Tensor] | None = None
        self.unused = False

    def sent(self, _replay: Any) -> None:
        """Write that the arguments are sent."""
        if (program := self._recorder.program) is not None:
            given = [program.shadows.value(each) for each in self._tensors]
            self._sent = program.tracer.value(storages=frozenset())
            program.tracer.effect(self.call.send, (tuple(given),), self._sent, changes=True)

    def arrived(self, result: Any, unused: bool) -> None:
        """Write that the result is taken.

        Args:
            result: what the call has returned.
            unused: whether the step does not use it.

        Raises:
            Unrecordable: it has something else than tensors that require no grad.
        """
        recorder, program = self._recorder, self._recorder.program
        if (kind := "" if unused else form_of(result)) is None:
            raise Unrecordable(
                "a call of another worker outside of an autograd context returned something else than tensors that require no "
                "grad, and None"
            )
        if unused:
            result = None
        self.results = results = tensors_of(result)
        recorder.events.append(("returned", kind, form(tuple(map(recorder.names.knows, results)), repr)))
        recorder.keep(results)
        self.call.returned([each._array for each in results], kind)
        if program is not None and self._sent is not None:
            uses = frozenset[int]().union(*(program.shadows.value(each).storages for each in self._tensors))
            made = program.tracer.value(storages=frozenset())
            program.tracer.effect(self.call.take, (self._sent,), made, uses, changes=True)
            for place, each in enumerate(results):
                program.shadows.put(each, Tensor(arrived(program, made, place, each._array)))
        recorder.names.made(len(recorder.events), results)


def check_plain(each: Any) -> None:
    """Raise unless an argument is of a kind that a step can send again (``ARGUMENTS``).

    Raises:
        Unrecordable: it is something else.
    """
    if not isinstance(each, ARGUMENTS):
        raise Unrecordable(
            f"an argument of the call of another worker is a {type(each).__name__}; give it tensors, numbers or RRefs"
        )


def _only_tensors(result: Any) -> bool:
    if type(result) is dict:
        return all(type(key) in (str, int) and _only_tensors(each) for key, each in result.items())
    return isinstance(result, Tensor) or (isinstance(result, (tuple, list)) and all(map(_only_tensors, result)))
