"""A case: one call, the data to repeat it with, and what came of it: values, first and second gradients, or an error."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._pytree import tree_map

from .packing import packed, packed_all, pickled
from .recording import Recorder, tensors

LARGEST = 200_000  # elements of a sample's arguments
SEEDS = 8  # a random result of one element may be the same with another seed


def case(
    entry: str,
    note: str,
    function: Callable[..., Any],
    name: str | None,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    finish: Callable[..., Any] | None = None,
    orders: int = 0,
    shapes_only: bool = False,
) -> dict[str, Any] | None:
    """The case of ``function(*arguments, **keywords)``; ``None`` if it is too large to send.

    Args:
        name: the function's public name; ``None`` to record the calls that it makes.
        finish: a function of the result that hides what is not determined, as the signs of eigenvectors.
        orders: how many orders of derivatives to compute.
    """
    leaves = tensors((arguments, keywords))
    if sum(leaf.numel() for leaf in leaves) > LARGEST:
        return None
    data = packed_all(leaves)
    recorder = Recorder()
    args, kwargs = _fresh((arguments, keywords))
    inputs = tensors((args, kwargs))
    for number, leaf in enumerate(inputs):
        recorder.argument(number, leaf)
    message: dict[str, Any] = {"entry": entry, "note": note, "kind": "operation", "leaves": data}
    torch.manual_seed(1)
    try:
        if name is None:
            with recorder:
                result = function(*args, **kwargs)
        else:
            before = args, kwargs
            result = function(*args, **kwargs)
            recorder.add(name, *before, result)
        if finish is not None:
            with recorder:
                result = finish(result)
    except Exception as error:
        if name is None:
            raise pickle.PicklingError("an error inside a wrapper") from error
        message["program"] = pickled([(name, args, kwargs)], recorder.places)
        message["error"] = ([kind.__name__ for kind in type(error).__mro__], str(error)[:200])
        return message
    message["program"] = pickled(recorder.steps, recorder.places)
    if not recorder.steps:
        raise pickle.PicklingError("it calls nothing public")
    last = result is recorder.kept[-1][2]
    message["output"] = None if last else pickled(result, recorder.places)
    message["values"] = packed_all(result)
    message["shapes_only"] = shapes_only or _is_random(function, arguments, keywords, message["values"])
    if orders and not message["shapes_only"]:
        message |= gradients(tensors(result), inputs, orders)
    return message


def gradients(outputs: list[torch.Tensor], inputs: list[torch.Tensor], orders: int) -> dict[str, Any]:
    """Gradients of ``outputs`` weighted by drawn numbers, and those of the gradients, weighted again."""
    torch.manual_seed(2)
    message: dict[str, Any] = {}
    wanted = [leaf for leaf in inputs if leaf.requires_grad]
    for order in range(1, orders + 1):
        places = [number for number, value in enumerate(outputs) if value is not None and value.requires_grad]
        outputs = [outputs[number] for number in places]
        if not wanted or not outputs:
            break
        weights = [torch.randn_like(value.detach()) for value in outputs]
        try:
            found = torch.autograd.grad(outputs, wanted, weights, allow_unused=True, create_graph=order < orders)
        except RuntimeError:
            break  # not differentiable this often
        message[f"order{order}"] = (places, packed_all(weights), [None if g is None else packed(g) for g in found])
        outputs = list(found)
    return message


def spread(values: Iterator[Any], count: int) -> list[Any]:
    """At most ``count`` of the values, evenly spread."""
    everything = list(values)
    step = max(1, len(everything) / count)
    return [everything[int(number * step)] for number in range(min(count, len(everything)))]


def _fresh(values: Any) -> Any:
    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)

    return tree_map(copy, values)


def _is_random(function: Callable[..., Any], arguments: Any, keywords: Any, values: list[Any]) -> bool:
    for seed in range(3, 3 + SEEDS):
        args, kwargs = _fresh((arguments, keywords))
        torch.manual_seed(seed)
        with patch("torch.manual_seed"):  # some of the database's functions set a seed of their own
            again = packed_all(function(*args, **kwargs))
        if any(
            isinstance(one, tuple) and isinstance(two, tuple) and one[2].tobytes() != two[2].tobytes()
            for one, two in zip(values, again)
        ):
            return True
    return False
