"""Calls of a value's methods where the value lives: ``rref.rpc_sync().method(...)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.futures import Future
from ..rpc.extend import call_function, is_async_execution
from .remote import create

if TYPE_CHECKING:
    from .rref import RRef

# Special methods that a user may name; the others are asked for by Python itself, when it pickles or copies, say.
SPECIAL = frozenset({"__call__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__contains__"})

Caller = Callable[["RRef", Callable[..., Any], tuple[Any, ...], float, "dict[str, Any]"], Any]


class Proxy:
    """Stands for the value of a reference: every attribute is a method to call where the value lives."""

    __slots__ = ("_call", "_reference", "_timeout")

    def __init__(self, reference: RRef, timeout: float, call: Callable[..., Any]) -> None:
        self._reference = reference
        self._timeout = timeout
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") and name.endswith("__") and name not in SPECIAL:
            raise AttributeError(f"a proxy has no {name}; name a method of the value")
        method = MethodOf(self._reference, name)
        return lambda *args, **kwargs: self._call(self._reference, method, args, self._timeout, kwargs)

    def __reduce__(self) -> Any:
        raise TypeError("a proxy cannot be sent or copied; send the RRef and make another there")


class MethodOf:
    """A method of the value of a reference, to be looked up at the owner. It travels; the value does not."""

    def __init__(self, reference: RRef, name: str) -> None:
        self.reference = reference
        self.name = name
        self.__qualname__ = f"{reference}.{name}"  # how errors name it

    @property
    def _telegrad_async_execution(self) -> bool:
        return is_async_execution(self._find())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._find()(*args, **kwargs)

    def _find(self) -> Any:
        return getattr(self.reference.local_value(), self.name)


def call_async(
    reference: RRef, function: Any, args: tuple[Any, ...], timeout: float, kwargs: dict[str, Any] | None = None
) -> Future[Any]:
    """Run ``function`` at the reference's owner."""
    agent = reference._context.agent
    return call_function(agent, reference._fork.owner.rank, function, args, kwargs, timeout)


def call_sync(
    reference: RRef, function: Any, args: tuple[Any, ...], timeout: float, kwargs: dict[str, Any] | None = None
) -> Any:
    """Run ``function`` at the reference's owner and wait for the result."""
    return call_async(reference, function, args, timeout, kwargs).wait()


def call_remote(
    reference: RRef, function: Any, args: tuple[Any, ...], timeout: float, kwargs: dict[str, Any] | None = None
) -> RRef:
    """Run ``function`` at the reference's owner and refer to the result."""
    return create(reference._context, reference._fork.owner.rank, function, args, kwargs, timeout)
