"""``PlainParts``: functions that other workers call by numbers in captured steps, outside of autograd contexts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from ...capture.extend import tensors_of
from ...core.extend import Tensor
from ...rpc.extend import RawBody, ServerCall, is_async_execution, resolve
from .callee import Arguments
from .messages import ACCEPTED, pack, refusal, unpack
from .states import PartTable

if TYPE_CHECKING:
    from ...rpc.extend import Agent

OTHER_FORM = "other"
UNKNOWN_CALL = "it does not know this call"


class PlainPart:
    """Function, with its arguments.

    Args:
        find: finds the function, as calls do.
        arguments: of its calls.
        marked: whether each tensor requires grad.
        form: of its result (``form_of``); empty if the caller does not use it.
    """

    def __init__(self, find: Callable[[], Any], arguments: Arguments, marked: Sequence[bool], form: str) -> None:
        self._find, self._arguments, self._marked, self._form = find, arguments, marked, form

    def call(self, call: ServerCall, tensors: Sequence[Any]) -> None:
        """Call the function, and answer with its result.

        Args:
            call: the request.
            tensors: those among the arguments.
        """
        function = self._find()
        call.what = getattr(function, "__qualname__", None) or repr(function)
        for tensor, marked in zip(tensors, self._marked):
            tensor._requires_grad = marked
        args, kwargs = self._arguments.filled(tensors)
        result = function(*args, **kwargs)
        del args, kwargs
        if is_async_execution(function):
            call.reply_with(result.then(lambda done: self._packed(done.value())), is_future=True)
        elif isinstance(result, CoroutineType):
            call.reply_with(self._packed_later(result))
        else:
            call.reply(self._packed(result))

    def _packed(self, result: Any) -> RawBody:
        """Return the answer with a result: its arrays; without them, if it has another form than in the recorded step."""
        if self._form and form_of(result) != self._form:
            return pack([ACCEPTED, OTHER_FORM], ())
        return pack([ACCEPTED], [each._array for each in tensors_of(result)] if self._form else ())

    async def _packed_later(self, result: Any) -> RawBody:
        return self._packed(await result)


class PlainParts:
    """Functions that other workers call by numbers.

    Args:
        agent: this worker's agent.
        key_of: returns what names one incarnation of a worker.
        lock: guards the table.

    Attributes:
        table: the functions.
    """

    def __init__(self, agent: Agent, key_of: Callable[[Any], Any], lock: threading.Lock) -> None:
        self._agent, self._key_of, self._lock = agent, key_of, lock
        self.table: PartTable[PlainPart] = PartTable()

    def serve_define(self, call: ServerCall) -> None:
        """Note a function (``GradientMethod.DEFINE``)."""
        number, (kind, target, name, arguments, marked, form), _ = call.open()
        find: Callable[[], Any] = partial(resolve, target, self._agent.name)
        if kind == "method":
            find = partial(getattr, target.local_value(), name)
        part = PlainPart(find, Arguments(arguments), marked, form)
        with self._lock:
            dropped = self.table.learn(self._key_of(call.peer), int(number), part)
        del dropped  # here, without the lock: it may hold a user's objects
        call.reply(None)

    def serve_plain(self, call: ServerCall) -> None:
        """Call a function (``GradientMethod.PLAIN``)."""
        (number,), arrays = unpack(call.open())
        with self._lock:
            part = self.table.find(self._key_of(call.peer), int(number))
        if part is None:
            call.reply(refusal(UNKNOWN_CALL, final=False))
            return
        part.call(call, [Tensor(each) for each in arrays])


def form_of(result: Any) -> str | None:
    """Return the form of ``None``, a tensor, and lists, tuples and dictionaries of such; ``None`` for anything else."""
    if result is None:
        return "none"
    if type(result) is Tensor and not result._requires_grad:
        return "tensor"
    if type(result) in (list, tuple):
        inside = [form_of(each) for each in result]
    elif type(result) is dict and all(type(key) in (str, int) for key in result):
        inside = [(each := form_of(value)) and f"{key!r}:{each}" for key, value in result.items()]
    else:
        return None
    return None if None in inside else f"{type(result).__name__}({','.join(map(str, inside))})"
