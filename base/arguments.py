"""Check of an argument's type, with one wording for all packages."""

from __future__ import annotations

from typing import Any

from .errors import ArgumentTypeError


def check_type(name: str, value: object, kinds: type[Any] | tuple[type[Any], ...], wanted: str) -> None:
    """Raise if an argument has none of some types.

    Args:
        name: of the argument.
        value: what was given.
        kinds: the types.
        wanted: what to give, in words.

    Raises:
        ArgumentTypeError: it has none of them.
    """
    if not isinstance(value, kinds):
        raise ArgumentTypeError(f"{name} must be {wanted}; you gave {value!r}")
