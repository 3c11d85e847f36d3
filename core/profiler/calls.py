"""Events of calls to other workers: begun where a call is made, ended where its answer arrives.

What sends the call takes the events (``take_calls``), and ends them; this package knows nothing of messages.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..futures import Future
from .scope import profiles

if TYPE_CHECKING:
    from .events import FunctionEvent
    from .recorder import profile

T = TypeVar("T")


class RecordedCall(NamedTuple):
    """A call to another worker in one profile."""

    profile: profile
    event: FunctionEvent


_sending: ContextVar[tuple[RecordedCall, ...]] = ContextVar("telegrad_recorded_calls", default=())


def record_call(name: str, request: Callable[[], Future[T]], blocking: bool = False) -> Future[T]:
    """Record a call to another worker in every profile of this thread or task.

    Args:
        name: of the event.
        request: sends the call, and returns the future of its answer.
        blocking: this thread waits for the answer.
    """
    calls = tuple(RecordedCall(each, each.begin_call(name, blocking)) for each in profiles.get() if each.running)
    token = _sending.set(calls)
    try:
        future = request()
    except BaseException:
        end_calls(calls)
        raise
    finally:
        _sending.reset(token)
    if future.done():  # it may never have been sent
        end_calls(calls)
    return future


def take_calls() -> tuple[RecordedCall, ...]:
    """Return the recorded calls that this thread is about to send; the one who takes them ends them."""
    calls = _sending.get()
    if calls:
        _sending.set(())
    return calls


def end_calls(calls: tuple[RecordedCall, ...]) -> None:
    """Record the end of a call, once."""
    for call in calls:
        call.profile.end_call(call.event)
