"""Cases of the database of operators: every form, dtype and error of each entry."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import _getattr_qual

from .cases import case, spread

# How many samples of each dtype; of float64 and complex128 with gradients of the second order.
SAMPLES = {
    torch.float64: 14,
    torch.float32: 6,
    torch.complex128: 8,
    torch.int64: 6,
    torch.uint8: 4,
    torch.bool: 4,
    torch.bfloat16: 4,
    torch.float16: 4,
}
ERRORS = 8
FORMS = 2
EMPTY = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted", "resize_")


def entries() -> dict[str, Any]:
    """The entries by name, with their variant behind a dot."""
    return {f"{each.name}.{each.variant_test_name}".rstrip("."): each for each in op_db}


def cases(name: str, entry: Any) -> Iterator[Any]:
    """The cases of one entry, or text that says why there is none."""
    for dtype, count in SAMPLES.items():
        if dtype not in entry.supported_dtypes("cpu"):
            continue
        try:
            yield from _samples(name, entry, dtype, count)
        except Exception as error:
            yield f"{dtype}: no samples: {type(error).__name__}: {str(error)[:120]}"
    try:
        for error_input in spread(entry.error_inputs("cpu"), ERRORS):
            yield _case(name, "error input", entry, entry.op, error_input.sample_input)
    except Exception as error:
        yield f"no error inputs: {type(error).__name__}: {str(error)[:120]}"


def _samples(name: str, entry: Any, dtype: torch.dtype, count: int) -> Iterator[Any]:
    differentiable = dtype in entry.supported_backward_dtypes("cpu") and entry.supports_autograd
    samples = spread(entry.sample_inputs("cpu", dtype, requires_grad=differentiable), count)
    orders = 0 if not differentiable else 2 if dtype in (torch.float64, torch.complex128) else 1
    if not entry.supports_gradgrad:
        orders = min(orders, 1)
    kind = str(dtype).removeprefix("torch.")
    for number, sample in enumerate(samples):
        yield _case(name, f"{kind} {number}", entry, entry.op, sample, orders)
    if dtype is not torch.float64:
        return
    for number, sample in enumerate(samples[:FORMS]):
        if entry.method_variant is not None and entry.method_variant is not entry.op:
            yield _case(name, f"form: method {number}", entry, entry.method_variant, sample, 0, f"Tensor.{entry.name}")
        for alias in entry.aliases:
            yield _case(
                name,
                f"form: alias {alias.name} {number}",
                entry,
                alias.op,
                sample,
                0,
                alias.name.removeprefix("torch."),
            )
        if entry.inplace_variant is not None:
            inplace = entry.inplace_variant
            public = None if inplace.__name__ == "<lambda>" else f"Tensor.{inplace.__name__}"
            yield _case(name, f"form: in place {number}", entry, inplace, sample, 0, public)


def _case(
    name: str, note: str, entry: Any, function: Any, sample: Any, orders: int = 0, public: str | None = None
) -> Any:
    if public is None and _public(entry.name) is function:
        public = entry.name
    if public is not None and not orders and isinstance(sample.input, torch.Tensor):
        sample.input = sample.input.detach()  # in-place forms do not change leaves
    arguments = (sample.input, *sample.args)
    finish = sample.output_process_fn_grad if orders else None
    public = None if public is None else f"torch.{public}"
    only_shapes = entry.name in EMPTY
    try:
        return case(name, note, function, public, arguments, dict(sample.kwargs), finish, orders, only_shapes)
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
        return f"{note}: {type(error).__name__}: {str(error)[:120]}"


def _public(name: str) -> Any:
    try:
        return _getattr_qual(torch, name)
    except AttributeError:
        return None
