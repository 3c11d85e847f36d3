"""``ValueOf``: what stands for the value of a reference in the arguments of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.errors import SerializationError
from ..rpc.extend import Promise

if TYPE_CHECKING:
    from ..core.futures import Future
    from .context import RRefContext
    from .forks import Fork


class ValueOf(Promise):
    """Stand-in for the value of a reference, in the arguments of a call (``rpc.value``).

    Args:
        reference: the ``RRef``.
    """

    __slots__ = ("reference",)

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def known(self, to: int) -> tuple[Any] | None:
        """Return the value in a tuple, if it is here; not for this worker itself, whose functions get the very object."""
        value: Future[Any] | None = self.reference.value_here(to)
        return None if value is None or value.exception() is not None else (value.value(),)

    def sendable_fork(self, context: RRefContext) -> Fork:
        """Return the fork of the reference, as ``RRef.sendable_fork`` does."""
        fork: Fork = self.reference.sendable_fork(context)
        return fork

    def __reduce__(self) -> Any:
        raise SerializationError("rpc.value(reference) can be sent in the arguments of calls only")

    def __repr__(self) -> str:
        return f"the value of {self.reference!r}"


class ArrivedValue(ValueOf):
    """The same, at a worker of a mesh that has the value: its function gets it, and the workers below fetch their own.

    Args:
        reference: the ``RRef``.
        value: its value.
    """

    __slots__ = ("value",)

    def __init__(self, reference: Any, value: Any) -> None:
        super().__init__(reference)
        self.value = value

    def arrived(self) -> Any:
        """Return the value."""
        return self.value
