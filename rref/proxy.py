"""Calls of a value's methods where the value lives: ``rref.rpc_sync().method(...)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..rpc.extend import is_async_execution

# Special methods that a user may name; the others are asked for by Python itself, when it pickles or copies, say.
SPECIAL = frozenset(
    {"__call__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__enter__", "__exit__"}
)

Call = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]


class Proxy:
    """Stand-in for the value of a reference: every attribute is a method to call where the value lives.

    Args:
        call: runs the method of a name with positional and keyword arguments at the owner; its result is the method's.
    """

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") and name.endswith("__") and name not in SPECIAL:
            raise AttributeError(f"a proxy has no {name}; name a method of the value")
        return lambda *args, **kwargs: self._call(name, args, kwargs)

    def __reduce__(self) -> Any:
        raise TypeError("a proxy cannot be sent or copied; send the RRef and make another there")


class MethodOf:
    """A method of the value of a reference, looked up at the owner. It travels; the value does not."""

    def __init__(self, reference: Any, name: str) -> None:
        self.reference = reference
        self.name = name
        self.profiled_as = name
        self.__qualname__ = f"{reference}.{name}"  # how errors name it

    @property
    def _telegrad_async_execution(self) -> bool:
        return is_async_execution(self._find())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._find()(*args, **kwargs)

    def _find(self) -> Any:
        return getattr(self.reference.local_value(), self.name)
