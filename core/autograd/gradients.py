"""``backward`` and ``grad``: backward passes over the graph of this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from ...base.errors import AutogradError
from ..tensors import Tensor
from .accumulate import accumulate_grad
from .edges import gradient_edge
from .engine import GraphTask
from .leaf_gradient import lend
from .node import Node

Tensors = Tensor | Sequence[Tensor]
Gradients = Tensor | Sequence[Tensor | None] | None


def backward(
    tensors: Tensors,
    grad_tensors: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradients of ``tensors`` to the ``.grad`` of the leaves below them (or of ``inputs`` only).

    Args:
        tensors: the tensors to start from.
        grad_tensors: the gradient of each start, of its shape; ``None`` means 1 and is allowed for one-element
            tensors only.
        retain_graph: keep what the graph saved, to go over it again; by default as ``create_graph``.
        create_graph: record the pass, so that the gradients can be differentiated.
        inputs: the only leaves to add to; all by default.

    Raises:
        AutogradError: a start requires no grad, needs a gradient, or the graph was freed or modified in place.
    """
    task = GraphTask(
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=None if inputs is None else _sequence(inputs),
    )
    _run(task, _sequence(tensors), grad_tensors)
    if inputs is not None:
        for tensor, gradient in zip(_sequence(inputs), task.captured):
            if gradient is not None:
                accumulate_grad(tensor, gradient)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    *,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Return the gradients of ``outputs`` with respect to ``inputs``; no ``.grad`` is changed.

    Args:
        outputs: the tensors to differentiate.
        inputs: tensors of the graph, leaves or not.
        grad_outputs: the gradient of each output, of its shape; ``None`` means 1 and is allowed for one-element
            tensors only.
        retain_graph: keep what the graph saved, to go over it again; by default as ``create_graph``.
        create_graph: record the pass, so that the results can be differentiated.
        only_inputs: must be true; to add to the ``.grad`` of leaves call ``backward``.
        allow_unused: return ``None`` for an input that does not take part, instead of raising.
        materialize_grads: return zeros for such an input.

    Returns:
        One gradient for each input, of its shape and dtype.

    >>> x = Tensor([3.0]).requires_grad_()
    >>> grad(x * x, x)
    (tensor([6.]),)

    Raises:
        AutogradError: as ``backward``; or an input does not take part and ``allow_unused`` is not true.
        ValueError: ``only_inputs`` is false.
    """
    if not only_inputs:
        raise ValueError(
            "grad() changes no .grad, so only_inputs must be true; call backward() to add to the .grad of leaves"
        )
    wanted = _sequence(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    task = GraphTask(keep_graph=keep, create_graph=create_graph, inputs=wanted)
    _run(task, _sequence(outputs), grad_outputs)
    results = [None if gradient is None else _own(gradient) for gradient in task.captured]
    for index, result in enumerate(results):
        if result is None and materialize_grads:
            results[index] = Tensor(np.zeros_like(wanted[index]._array))
        elif result is None and not allow_unused:
            raise AutogradError(
                f"inputs[{index}] takes no part in computing the outputs; pass allow_unused=True to get None for it"
            )
    return cast("tuple[Tensor, ...]", tuple(results))


Tensor._backward = backward


def _run(task: GraphTask, outputs: Sequence[Tensor], gradients: Gradients) -> None:
    given = [None] * len(outputs) if gradients is None else _sequence(gradients)
    if len(given) != len(outputs):
        raise AutogradError(f"you gave {len(given)} gradients for {len(outputs)} tensors; give one for each")
    # Two outputs may be two results of one node, or the same tensor twice: a root is fed once.
    feeds: dict[Node, list[Any]] = {}
    for index, (output, gradient) in enumerate(zip(outputs, given)):
        edge = gradient_edge(output)
        if edge is None:
            raise AutogradError(
                f"tensor {index} does not require grad and has no grad_fn; was it computed from tensors with "
                "requires_grad=True, outside no_grad?"
            )
        node, slot = edge
        feed = feeds.setdefault(node, [None] * node.num_inputs)
        value = _root_gradient(output, gradient, task.create_graph)
        feed[slot] = value if feed[slot] is None else feed[slot] + value
    task.expect(*feeds)
    for root, feed in feeds.items():
        task.feed(root, feed)
    task.run()


def _root_gradient(output: Tensor, gradient: Tensor | None, create_graph: bool) -> Any:
    array = output._array
    if gradient is None:
        if array.size != 1:
            raise AutogradError(
                f"the gradient of a tensor of shape {array.shape} must be given (grad_tensors or gradient=); "
                "only for one element is it 1 by default"
            )
        return np.ones(array.shape, array.dtype)
    if not isinstance(gradient, Tensor):
        raise TypeError(f"a gradient must be a tensor or None, not {type(gradient).__name__}")
    if gradient._array.shape != array.shape:
        raise AutogradError(f"a tensor of shape {array.shape} needs a gradient of that shape, not {gradient.shape}")
    return gradient if create_graph else lend(gradient._array, array.dtype)


def _own(gradient: Any) -> Tensor:
    return gradient if isinstance(gradient, Tensor) else Tensor(np.array(gradient))


def _sequence(tensors: Any) -> Any:
    if isinstance(tensors, Tensor) or not isinstance(tensors, Iterable):  # invalid types are reported below
        return (tensors,)
    return tensors if isinstance(tensors, Sequence) else tuple(tensors)
