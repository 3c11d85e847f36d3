"""Choice of the positional arguments that a transform differentiates by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def chosen(argnums: int | tuple[int, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of these numbers; negative ones count from the end.

    Raises:
        ValueError: there is no such argument.
    """
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for number in numbers:
        if type(number) is not int or not -len(args) <= number < len(args):
            raise ValueError(
                f"argnums={argnums!r} names argument {number!r}, and the function got {len(args)} positional arguments"
            )
    return tuple(args[number] for number in numbers)


def with_chosen(
    func: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return ``func`` as a function of the chosen arguments alone.

    Args:
        func: the function.
        argnums: the numbers of the chosen arguments.
        args, kwargs: all arguments.
    """
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)

    def partly(*given: Any) -> Any:
        every = list(args)
        for number, value in zip(numbers, given):
            every[number] = value
        return func(*every, **kwargs)

    return partly
