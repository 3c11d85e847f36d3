"""Arguments that are no tensors, and that are others in each call: a plan for each of their values would help no call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .trees import form, tensors_of


def plain_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without tensors, by the names of parameters, in a form to compare.

    Args:
        function: the function; if it is not one of Python, there are none.
        args, kwargs: its arguments.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    names = code.co_varnames[hasattr(function, "__self__") : code.co_argcount]
    given = {**dict(zip(names, args)), **kwargs}
    return {name: form(each, id) for name, each in given.items() if not tensors_of(each)}


def varying(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names of arguments that differ between two calls."""
    return [name for name, each in one.items() if name in other and other[name] != each]
