"""Comparison of a case's results and gradients with the peer's.

In less than double precision two right results can differ in every digit, where terms cancel. A result is then held against
the one that this library computes in float64, whose cases are compared too: it must be as near to that as the peer's is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import telegrad as tg

from ...core.types import Array
from .compare import TOLERANCE, difference
from .left_out import INDICES_OF_EQUALS
from .unpacking import array_of, tensor_of

# (verdict, detail); verdicts are in the order of ``report.VERDICTS``
Outcome = tuple[str, str]
AGREES: Outcome = ("agrees", "")

Message = dict[str, Any]
# From a message to the results of its program or module, and the tensors whose gradients are wanted.
Compute = Callable[[Message], tuple[list[Any], list[tg.Tensor]]]

# Their gradients are compared by shape and dtype only: each library rounds at other places.
HALVES = "float16", "bfloat16"


class Part(NamedTuple):
    """A result or gradient, ours and the packed one of the peer."""

    label: str
    ours: Any
    expected: Any
    shapes_only: bool

    def difference(self) -> str | None:
        """Return how the two differ; ``None`` if they do not."""
        ours, expected = self.ours, self.expected
        if not self.label.startswith("gradient") or (ours is not None and expected is not None):
            return difference(ours, expected, self.shapes_only)
        some = ours.detach().numpy() if ours is not None else array_of(expected) if expected is not None else None
        return "none" if some is not None and some.any() else None  # none and zeros mean the same


def judged(message: Message, compute: Compute) -> Outcome:
    """Return the outcome of a case whose results ``compute`` returns."""
    results, inputs = compute(message)
    if len(results) != len(message["values"]):
        return "wrong", f"{len(results)} results, not {len(message['values'])}"
    for number, part in enumerate(_parts(message, results, inputs)):
        text = part.difference()
        if text and not _is_rounding(message, compute, number, part):
            return "wrong", f"{part.label}: {text}"
    return AGREES


def _parts(message: Message, results: list[Any], inputs: list[tg.Tensor]) -> Iterator[Part]:
    """Yield the results, then the gradients of each order."""
    for number, (ours, theirs) in enumerate(zip(results, message["values"])):
        yield Part(f"result {number}", ours, theirs, message["shapes_only"] or _undetermined(message, number))
    outputs: list[Any] = [value for value in results if isinstance(value, tg.Tensor)]
    wanted = [leaf for leaf in inputs if leaf.requires_grad]
    for order in (1, 2):
        if f"order{order}" not in message:
            return
        places, weights, grads = message[f"order{order}"]
        used = [(outputs[place], tensor_of(weight)) for place, weight in zip(places, weights)]
        used = [(value, weight) for value, weight in used if value is not None and value.requires_grad]
        outputs = [None] * len(wanted)  # a result that is not recorded is constant: its gradient is zero
        if used:
            outputs = _derived(used, wanted, f"order{order + 1}" in message)
        for number, (ours, theirs) in enumerate(zip(outputs, grads)):
            half = theirs is not None and theirs[1] in HALVES
            yield Part(f"gradient {number} of order {order}", ours, theirs, half)


def _derived(outputs: list[Any], wanted: list[tg.Tensor], again: bool) -> list[Any]:
    values = [value for value, _ in outputs]
    weights = [weight.to(value.dtype) for value, weight in outputs]
    return list(tg.autograd.grad(values, wanted, weights, allow_unused=True, create_graph=again))


def _undetermined(message: Message, number: int) -> bool:
    # Integers and halves of a sample have equal ones among them.
    place = INDICES_OF_EQUALS.get(message["entry"])
    return place == number and not message["note"].startswith("float64")


def _is_rounding(message: Message, compute: Compute, number: int, part: Part) -> bool:
    """Return whether our result is as near to that in float64 as the peer's, within a factor of 4, where that is a number."""
    if not isinstance(part.ours, tg.Tensor) or part.expected is None or str(part.ours.dtype) not in TOLERANCE:
        return False
    ours, theirs = part.ours.detach().numpy(), array_of(part.expected)
    if ours.dtype in (np.float64, np.complex128) or ours.shape != theirs.shape:
        return False
    wide = _widened(message)
    precise = [*_parts(wide, *compute(wide))][number].ours
    if precise is None:
        return False
    exact = precise.detach().numpy()
    return _distance(ours, exact, np.isnan(theirs)) <= 4 * _distance(theirs, exact, np.isnan(theirs))


def _distance(x: Array, exact: Array, left_out: Array) -> float:
    """Return the largest distance of two arrays; infinity if only one of them has a number somewhere."""
    x, exact = _wide(x)[~left_out], exact[~left_out]
    with np.errstate(invalid="ignore"):
        distance = np.where((x == exact) | (np.isnan(x) & np.isnan(exact)), 0.0, np.abs(x - exact))
    return float(np.nan_to_num(distance, nan=np.inf).max(initial=0))


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _widened(message: Message) -> Message:
    """Return the message with tensors of low precision in float64."""

    def wide(data: Any) -> Any:
        kind, dtype, _, requires_grad = data
        if dtype not in ("float32", "complex64", *HALVES):
            return data
        return kind, "complex128" if dtype == "complex64" else "float64", _wide(array_of(data)), requires_grad

    state = {key: wide(data) for key, data in message.get("state", {}).items()}
    return {**message, "leaves": [wide(data) for data in message["leaves"]], "state": state}
