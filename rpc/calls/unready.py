"""Arguments of a call that are futures of its caller, and have no value yet: a call that times out names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.futures import Future

if TYPE_CHECKING:
    from .dispatch import PendingCall

NamedFuture: TypeAlias = "tuple[str, Future[Any]]"


def unready(parts: Iterable[tuple[str, Any]]) -> list[NamedFuture]:
    """Return the futures without a value in the parts of a request, each with the name of its part.

    Args:
        parts: their names in error messages, and what they are: lists, tuples and dictionaries are searched.
    """
    return [(name, each) for name, part in parts for each in _futures(part) if not each.done()]


def _futures(part: Any) -> Iterator[Future[Any]]:
    if isinstance(part, Future):
        yield part
    elif isinstance(part, (list, tuple, dict)):
        for each in part.values() if isinstance(part, dict) else part:
            yield from _futures(each)


def why_unready(call: PendingCall, calls: Mapping[int, PendingCall]) -> str:
    """Return a text that names the first argument for which a call still waits; empty if there is none.

    Args:
        call: waits for its answer.
        calls: those under way of its worker, by id.
    """
    for name, future in call.attached.unready:
        if not future.done():
            maker = calls.get(future.call[1]) if future.call is not None else None
            made = "a future of this worker that is not complete" if maker is None else f"the result of {maker.what}"
            return f"its {name} is not ready: it is {made}"
    return ""
