"""``checkpoint``: save nothing in a part of the forward pass, and compute it again in the backward pass.

T. Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from ...base.errors import AutogradError
from ..random import default_generator
from ..tensors import Tensor
from .grad_mode import enable_grad, is_grad_enabled
from .saved_hooks import saved_tensors_hooks


class _Region:
    """One call that is computed again: its arguments, and the tensors that the second run saved."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, preserve_rng_state: bool) -> None:
        self.call = (function, args, kwargs)
        self.state = default_generator.get_state() if preserve_rng_state else None
        self.count = 0
        self.recomputed: dict[int, Tensor] = {}

    def pack(self, tensor: Tensor) -> int:
        """Return a number in place of a tensor that the first run saves."""
        self.count += 1
        return self.count - 1

    def unpack(self, number: int) -> Tensor:
        """Return the tensor that the second run saved under that number."""
        if number not in self.recomputed:
            self._run_again()
        if number not in self.recomputed:
            raise AutogradError(
                f"checkpoint() ran the function again and it saved {len(self.recomputed)} tensors where it had saved "
                f"{self.count}; it must do the same each time"
            )
        return self.recomputed.pop(number)

    def _run_again(self) -> None:
        function, args, kwargs = self.call
        former = default_generator.get_state()
        self.recomputed = {}
        try:
            if self.state is not None:
                default_generator.set_state(self.state)
            with enable_grad(), saved_tensors_hooks(self._collect, lambda kept: kept):
                function(*args, **kwargs)
        finally:
            default_generator.set_state(former)

    def _collect(self, tensor: Tensor) -> Tensor:
        self.recomputed[len(self.recomputed)] = tensor
        return tensor


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Return ``function(*args, **kwargs)`` without saving tensors inside it; the backward pass calls it again.

    Args:
        function: computes the same each time it is called; it may use parameters that are not among ``args``.
        *args: its positional arguments.
        use_reentrant: must be false.
        preserve_rng_state: let the second run draw the same random numbers as the first.
        **kwargs: its keyword arguments.

    Raises:
        ValueError: ``use_reentrant``.
        AutogradError: from the backward pass, if the second run saved other tensors than the first.
    """
    if use_reentrant:
        raise ValueError(
            "checkpoint() runs the function again within the backward pass; call it with use_reentrant=False"
        )
    if not is_grad_enabled():
        return function(*args, **kwargs)
    region = _Region(function, args, kwargs, preserve_rng_state)
    with saved_tensors_hooks(region.pack, region.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]], segments: int, input: Tensor, use_reentrant: bool = False, **kwargs: Any
) -> Any:
    """Call the functions one after the other on ``input``, in ``segments`` parts of equal length, each checkpointed.

    Args:
        functions: each takes the result of the one before.
        segments: the number of parts.
        input: the argument of the first function.
        use_reentrant: must be false.
        **kwargs: for ``checkpoint``.

    Raises:
        ValueError: ``segments`` is not from 1 to the number of functions, or ``use_reentrant`` is true.
    """
    parts = list(functions)
    if not 1 <= segments <= len(parts):
        raise ValueError(f"segments must be from 1 to {len(parts)}, the number of functions, and you gave {segments}")

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def call(value: Any) -> Any:
            for part in parts[start:end]:
                value = part(value)
            return value

        return call

    value: Any = input
    bounds = [len(parts) * number // segments for number in range(segments + 1)]
    for start, end in pairwise(bounds):
        value = checkpoint(run(start, end), value, use_reentrant=use_reentrant, **kwargs)
    return value
