"""Proxies: ``rref.rpc_sync().method(...)`` calls a method of the value at its owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..rpc.extend import is_async_execution

# Special methods that a user may name. Python itself looks up the others, for example when it pickles or copies.
SPECIAL = frozenset(
    {"__call__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__enter__", "__exit__"}
)

Call = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]


class Proxy:
    """Stand-in for the value of a reference: every attribute is a function that calls that method at the owner.

    Args:
        call: gets a method's name, positional and keyword arguments, calls the method at the owner, and returns the result.
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


def refuse_attribute(reference: Any, name: str) -> NoReturn:
    """Raise the error for an attribute that a reference does not have, but its value may have."""
    raise AttributeError(
        f"an RRef has no attribute {name!r}; for a method of its value write rref.rpc_sync().{name}(...), "
        f"for an attribute of a copy of it rref.to_here().{name}"
    )


class MethodOf:
    """Method of the value of a reference. It can be sent to the owner, where the value takes the place of the reference.

    Args:
        value: stands for the value at the sender, and is the value at the owner.
        name: name of the method.
        text: what errors call the value.
    """

    def __init__(self, value: Any, name: str, text: str) -> None:
        self.value = value
        self.name = name
        self.profiled_as = name
        self.__qualname__ = f"{text}.{name}"  # name in errors

    @property
    def _telegrad_async_execution(self) -> bool:
        return is_async_execution(getattr(self.value, self.name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.value, self.name)(*args, **kwargs)
