"""Libraries of workers: in a mixed expression each worker computes with its own, and converts what arrives."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from ...interop import convert
from ...rpc.extend import current_agent
from .leaves import Leaves
from .operations import apply, dense

MIXED = ("telegrad", "torch", "jax")


def library_at(library: str, place: int) -> str:
    """Return the library of a worker, whose ``place`` is its rank and the seed of the expression, added."""
    return MIXED[place % len(MIXED)] if library == "mixed" else library


def use_library(library: str) -> None:
    """Let this worker compute with a library from now on."""
    current_agent().part(Leaves).library = library


def apply_here(name: str, left: Any, right: Any) -> Any:
    """Run an operation with this worker's library."""
    return compute(functools.partial(apply, name), left, right, in_jax=name)


def compute(operation: Callable[..., Any], *values: Any, in_jax: str | None = None) -> Any:
    """Compute with this worker's library, if the expression is a mixed one.

    Args:
        operation: works with tensors of ours and of PyTorch; without ``in_jax``, a function of a module that works with arrays
            of JAX, too.
        values: arrays of any library.
        in_jax: name of the operation with JAX.
    """
    leaves = current_agent().part(Leaves)
    if not leaves.mixed:
        return operation(*values)
    converted = [convert(value, leaves.library) for value in values]
    if leaves.library != "jax":
        return operation(*converted)
    from ...interop.jax import call
    from .jax_operations import IN_JAX

    return call(IN_JAX[in_jax] if in_jax else operation, *converted)


def total(*values: Any) -> Any:
    """Return the sum of all elements."""
    return functools.reduce(operator.add, [dense(value).sum() for value in values])


def double(value: Any) -> Any:
    """Return twice a value."""
    return value * 2.0
