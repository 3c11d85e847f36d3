"""``vmap``: a function of single examples, applied to batches.

The function is called for each example and the results are stacked: as fast as the loop that it replaces, and right for every
function that runs in Python, with branches on values too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ..core import Tensor, equal, get_rng_state, set_rng_state, stack
from .trees import checked, leaves, replaced

Dims = Any  # a number, None, or a tree of them with the form of the arguments or of a part of it


def vmap(
    func: Callable[..., Any],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function that applies ``func`` to each example of a batch.

    Args:
        func: returns a tree of tensors.
        in_dims: the dimension of each positional argument that counts the examples, or ``None`` for one that all share: one for
            all, or a tuple with one for each, which may be trees. Keyword arguments' is 0.
        out_dims: the same for the results; ``None`` takes the first example's.
        randomness: ``"error"`` refuses random operations, ``"different"`` draws for each example, ``"same"`` once for all.
        chunk_size: has no effect: examples are computed one by one.

    Returns:
        A function of batches.

    Raises:
        ValueError: at the call: dimensions do not fit the arguments, sizes differ, or nothing has a dimension of examples.
        RuntimeError: at the call: random operations with ``randomness="error"``.

    >>> vmap(lambda x, y: (x * y).sum(), in_dims=(0, None))(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if randomness not in ("error", "different", "same"):
        raise ValueError(f"randomness must be 'error', 'different' or 'same', and you gave {randomness!r}")

    @wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        tensors, dims = leaves((args, kwargs)), [*_spread(in_dims, args, "in_dims"), *_spread(0, kwargs, "in_dims")]
        count, state = _count(tensors, dims), get_rng_state()
        results = []
        for place in range(count):
            if randomness == "same":
                set_rng_state(state)
            slices = [each if dim is None else each.select(dim, place) for each, dim in zip(tensors, dims)]
            own, keywords = replaced((args, kwargs), slices)
            results.append(func(*own, **keywords))
        if randomness == "error" and not equal(get_rng_state(), state):
            raise RuntimeError(
                "the function given to vmap() draws random numbers; say whether examples draw their own, with "
                "randomness='different', or all the same, with randomness='same'"
            )
        return _stacked(results, out_dims)

    return batched


def _spread(dims: Dims, tree: Any, name: str) -> list[int | None]:
    """Return the dimension of each tensor of a tree, of dimensions given for all or for parts of it."""
    if dims is None or type(dims) is int:
        return [dims] * len(leaves(tree))
    if isinstance(tree, dict) and isinstance(dims, dict) and tree.keys() == dims.keys():
        return [dim for key in tree for dim in _spread(dims[key], tree[key], name)]
    if isinstance(tree, (list, tuple)) and isinstance(dims, (list, tuple)) and len(tree) == len(dims):
        return [dim for part, own in zip(tree, dims) for dim in _spread(own, part, name)]
    raise ValueError(f"{name} must be a number, None, or of the form of {tree!r}, and you gave {dims!r}")


def _count(tensors: Sequence[Tensor], dims: Sequence[int | None]) -> int:
    """Return the number of examples, the same in all arguments that have any."""
    for each, dim in zip(tensors, dims):
        if dim is not None and not -each.dim() <= dim < each.dim():
            raise ValueError(
                f"in_dims has dimension {dim} for a tensor of shape {tuple(each.shape)}, which has none such"
            )
    counts = {each.shape[dim] for each, dim in zip(tensors, dims) if dim is not None}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            "vmap() needs the same number of examples, at least one, in all arguments that have a dimension in in_dims; "
            f"they have {sorted(counts) or 'none'}"
        )
    return counts.pop()


def _stacked(results: list[Any], out_dims: Dims) -> Any:
    rows = [checked(result, "the result of the function given to vmap()") for result in results]
    dims = _spread(out_dims, results[0], "out_dims")
    columns = zip(*rows)
    return replaced(
        results[0], [column[0] if dim is None else stack(column, dim) for column, dim in zip(columns, dims)]
    )
