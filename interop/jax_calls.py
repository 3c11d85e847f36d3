"""``call``: a function of JAX that runs here, as a node of the context's graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from ..autograd_dist.extend import Parameters, as_tensor, current_context
from ..core.extend import Edge, is_grad_enabled
from ..rpc.extend import library_of
from .conversion import convert
from .jax_nodes import CallNode, Target

MOST_FUNCTIONS = 512  # compiled ones that are kept, by function and form of its arguments
NUMBERS = (jax.Array, np.ndarray, np.generic, int, float, complex)


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of JAX, compiled once for each form, shape and dtype of its arguments.

    Inside ``autograd_dist.context()`` the call is a node of the graph. Gradients reach ``Parameters`` among its arguments, and
    arrays that arrived from other workers, that other calls returned, or that are tensors of Telegrad or PyTorch. What the
    program computes with the results outside of ``call`` is not recorded.

    Args:
        function: a function that ``jax.jit`` can compile: it depends on its arguments alone, and has no effects.
        args: its arguments: pytrees of arrays of any library, and numbers. The function gets ``jax.Array``s, and for
            ``Parameters`` their tree. Other objects in them, such as strings and bools, must be hashable: the function is
            compiled once for each.

    Returns:
        What the function returns: a pytree of ``jax.Array``s.

    Raises:
        TypeError: an object among the arguments is not hashable; the function returned something else than arrays.
        Exception: what the function or JAX raised.

    Example:
        >>> import telegrad as tg  # doctest: +SKIP
        >>> tg.interop.jax.call(jax.numpy.dot, weights, x)  # doctest: +SKIP
    """
    leaves, form = jax.tree.flatten(args, is_leaf=lambda value: isinstance(value, Parameters))
    given = [_open(leaf) for leaf in leaves]
    records = current_context.get() is not None and is_grad_enabled()
    targets = [_target(leaf, value) if records else None for leaf, value in zip(leaves, given)]
    inputs = tuple(place for place, target in enumerate(targets) if target is not None)
    fixed = tuple(
        (place, _hashable(value)) for place, value in enumerate(given) if not _is_number(leaves[place], value)
    )
    compiled = _compile(function, form, inputs, fixed)
    skipped = {*inputs, *(place for place, _ in fixed)}
    rest = [value for place, value in enumerate(given) if place not in skipped]
    if not inputs:
        return compiled.run(rest)
    results, others, pull = compiled.forward([given[place] for place in inputs], rest)
    made, structure = jax.tree.flatten(results)
    if made:
        node = CallNode(compiled, pull, made, structure, [target for target in targets if target is not None])
        made = [_record(array, node, slot) for slot, array in enumerate(made)]
    return _merge(jax.tree.unflatten(structure, made), others)


class Compiled(NamedTuple):
    """Function of JAX, compiled for a form of its arguments.

    Attributes:
        name: the function's name.
        run: returns its results, given the arguments as a list.
        forward: given the arguments that gradients go to, and the other ones, returns the results that have gradients, the
            other results, and the function for ``pull``.
        pull: given that function and gradients of the results, returns the gradients of the arguments.
    """

    name: str
    run: Callable[[list[Any]], Any]
    forward: Callable[[list[Any], list[Any]], Any]
    pull: Callable[[Any, Any], Any]


@lru_cache(MOST_FUNCTIONS)
def _compile(function: Callable[..., Any], form: Any, inputs: tuple[int, ...], fixed: tuple[Any, ...]) -> Compiled:
    known = dict(fixed)

    def run(given: list[Any], rest: list[Any]) -> Any:
        first, others = iter(given), iter(rest)
        values = [
            next(first) if place in inputs else known[place] if place in known else next(others)
            for place in range(form.num_leaves)
        ]
        return function(*jax.tree.unflatten(form, values))

    def forward(given: list[Any], rest: list[Any]) -> Any:
        results, pull, others = jax.vjp(lambda given: _split(run(given, rest)), given, has_aux=True)
        return results, others, pull

    name = getattr(function, "__name__", type(function).__name__)
    return Compiled(
        name,
        jax.jit(lambda rest: run([], rest)),
        jax.jit(forward),
        jax.jit(lambda pull, gradients: pull(gradients)[0]),
    )


def _open(leaf: Any) -> Any:
    """Return an argument as the function gets it."""
    if isinstance(leaf, Parameters):
        return leaf.tree
    if isinstance(leaf, (*NUMBERS, str)) or as_tensor(leaf) is None:
        return leaf
    return convert(leaf, "jax")


def _target(leaf: Any, value: Any) -> Target | None:
    """Return where the gradient of an argument goes; ``None`` if it needs none."""
    if isinstance(leaf, Parameters):
        return leaf
    return _adapter().edge(value) if isinstance(value, jax.Array) else None


def _is_number(leaf: Any, value: Any) -> bool:
    return isinstance(leaf, Parameters) or (isinstance(value, NUMBERS) and not isinstance(value, bool))


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        name = type(value).__name__
        raise TypeError(
            f"a {name} among the arguments of call() is neither an array nor hashable; give its arrays in dicts, lists or "
            "tuples, or register the class with jax.tree_util"
        ) from None
    return value


def _split(results: Any) -> tuple[Any, Any]:
    """Return two trees: the results that have gradients, and the other ones. ``None`` is in the place of those left out."""
    results = jax.tree.map(jax.numpy.asarray, results)
    return (
        jax.tree.map(lambda array: array if _has_gradient(array) else None, results),
        jax.tree.map(lambda array: None if _has_gradient(array) else array, results),
    )


def _has_gradient(array: Any) -> bool:
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.inexact))


def _merge(results: Any, others: Any) -> Any:
    def one(first: Any, second: Any) -> Any:
        return second if first is None else first

    return jax.tree.map(one, results, others, is_leaf=lambda value: value is None)


def _record(array: Any, node: CallNode, slot: int) -> Any:
    edge: Edge = (node, slot)
    return _adapter().record(array, edge)


def _adapter() -> Any:
    return library_of(jax.numpy.zeros(()))
