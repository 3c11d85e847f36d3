"""The operations of random expressions with JAX. Importing this module imports JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
from jax import numpy as jnp

from .operations import ROWS


def _in_place(left: Any, right: Any) -> Any:
    result = left * right
    return jnp.tanh(result.at[1:].add(0.5))


_hooked: Any = jax.custom_vjp(lambda value: value)
_hooked.defvjp(lambda value: (value, None), lambda _, gradient: (gradient * 1.5,))


IN_JAX: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda left, right: left + 0.5 * right,
    "product": lambda left, right: jnp.tanh(left * right),
    "sine": lambda left, right: jnp.sin(left) - right * 0.25,
    "matrices": lambda left, right: jnp.tanh(left @ right.T @ left),
    "mean": lambda left, right: left - right.mean(0),
    "in place": _in_place,
    "hooked": lambda left, right: _hooked(left * right),
    "looked up": lambda table, other: other * 0.5 + jnp.tanh(table[jnp.asarray(ROWS)]).sum(0),
    "gate": lambda left, right: left * (jax.lax.stop_gradient(right) > 0),
}


@cache
def differentiate(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return an operation, compiled, which returns its result and what the second function needs to return the gradients."""
    forward = jax.jit(lambda left, right: jax.vjp(IN_JAX[name], left, right))
    return forward, jax.jit(lambda pull, gradient: pull(gradient))
