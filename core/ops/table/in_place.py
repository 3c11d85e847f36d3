"""In-place forms, made from the out-of-place ones: ``add_`` from ``add``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.errors import ArgumentTypeError, ArgumentValueError, AutogradError
from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import can_cast
from ...interception import NOT_TAKEN, active, offer
from ...tensors import Tensor
from ...types import DType
from .call_errors import FAILURES, explained
from .in_place_history import changed, check_writable, stopped
from .registry import PACKAGE, named
from .rows import TENSORS

_SCALED = frozenset((np.add, np.subtract))  # of operations that have ``alpha``


def inplace(
    operation: Callable[..., Tensor], ufunc: Callable[..., Any] | None = None, *, keeps: str = "keep"
) -> Callable[..., Tensor]:
    """Return the in-place form of ``operation``, which writes the result into the first argument and returns that.

    Args:
        operation: a function whose first argument is a tensor.
        ufunc: function of NumPy that writes directly to the memory, used if both operands have one dtype and nothing is
            recorded.
        keeps: whether the gradient rules use the overwritten value, which is then copied before: "keep", "overwrite" or
            "keep_for_other", as in ``Declaration``.
    """
    name = operation.__name__ + "_"

    def in_place(target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if active and (taken := offer(in_place, (target, *args), kwargs)) is not NOT_TAKEN:
            return taken
        recording = is_grad_enabled()
        recorded = recording and _any_requires_grad(target, args, *kwargs.values())
        if recorded or (recording and target._view is not None):
            check_writable(target, recorded)  # before anything is written
        scaled = bool(kwargs) and ufunc in _SCALED and _is_factor(kwargs, target)
        if ufunc is not None and not recorded and len(args) == 1 and (scaled or not kwargs):
            array, other = target._array, args[0]._array if isinstance(args[0], Tensor) else args[0]
            plain = isinstance(other, (int, float))
            if array.dtype.kind == "f" if plain else getattr(other, "dtype", None) is array.dtype:
                try:
                    factor = kwargs["alpha"] if scaled else 1
                    ufunc(array, other if factor == 1 else other * factor, out=array, casting="same_kind")
                except FAILURES as error:
                    raise explained(error, name, (target, *args), {}) from None
                return changed(target)
        source = target
        if recorded and (
            keeps == "keep" or (keeps == "keep_for_other" and _any_requires_grad(*args, *kwargs.values()))
        ):
            source = Tensor(target._array.copy(), target._requires_grad, target._edge)
            args = tuple(source if arg is target else arg for arg in args)
            kwargs = {key: source if arg is target else arg for key, arg in kwargs.items()}
        try:
            result = operation(source, *args, **kwargs)
            if result._edge is not None and result._array.dtype != target._array.dtype:
                result = fitting(name, result, target._array.dtype)
            write(name, target, result)
        except FAILURES as error:
            raise explained(error, name, (target, *args), kwargs) from None
        edge = result._edge
        if edge is None and recording and target._requires_grad:
            edge = stopped()
        return changed(target, edge)

    named(in_place, name, f"Write the result of ``{operation.__name__}`` to the first argument, and return that.")
    if operation.__module__ == PACKAGE or operation.__module__.startswith(f"{PACKAGE}.core."):
        in_place.__qualname__ = f"Tensor.{name}"  # it is a method only
    else:
        in_place.__module__ = operation.__module__  # a function in the same module
    return in_place


def write(name: str, target: Tensor, value: Tensor) -> None:
    """Copy ``value`` into the array of ``target``.

    Args:
        name: name of the operation, for the message.
        target: the tensor to change.
        value: a tensor of the same shape.

    Raises:
        TypeError: the dtype of ``value`` is of a higher category, as floating-point for an integer ``target``.
        ValueError: the shapes differ.
    """
    into, source = target._array, fitting(name, value, target._array.dtype)._array
    if source.shape != into.shape:
        raise ArgumentValueError(
            f"{name}() cannot write a result of shape {source.shape} into a tensor of shape {into.shape}"
        )
    into[...] = source


def fitting(name: str, value: Tensor, dtype: DType) -> Tensor:
    """Return ``value`` converted to ``dtype``, that of the tensor to write to.

    Args:
        name: name of the operation, for the message.
        value: the result of the operation.
        dtype: dtype to convert to.

    Raises:
        TypeError: ``dtype`` is of a lower category than that of ``value``.
    """
    if value._array.dtype == dtype:
        return value
    if not can_cast(value._array.dtype, dtype):
        raise ArgumentTypeError(
            f"{name}() cannot write {value.dtype} results into a tensor of {dtype}; convert it first"
        )
    converted: Tensor = TENSORS.cast(value, dtype)
    return converted


def write_out(name: str, result: Any, out: Any) -> Any:
    """Copy the result, or each of a named tuple of results, into ``out``, and return that.

    If ``out`` has another shape, it gets new memory of the right one, with a warning unless it was empty.

    Args:
        name: name of the operation, for the message.
        result: a tensor, or a named tuple of tensors.
        out: a tensor, or a tuple of tensors.

    Raises:
        AutogradError: the result is recorded, or ``out`` requires grad.
        TypeError: ``out`` is not a tensor, or its dtype is of a lower category.
    """
    if isinstance(result, tuple):
        return type(result)(*(write_out(name, *pair) for pair in zip(result, out)))
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{name}(): out must be a tensor, not {type(out).__name__}")
    if result._edge is not None or (out._requires_grad and is_grad_enabled()):
        raise AutogradError(f"{name}(out=...) cannot be recorded; call it under no_grad(), or leave out= away")
    if is_grad_enabled():
        check_writable(out, False)
    if out.shape != result.shape:
        if out.numel():
            warnings.warn(f"{name}(): out had shape {out.shape} and was resized to {result.shape}", stacklevel=3)
        out._replace(np.empty(result.shape, out.dtype))
    write(name, out, result)
    return changed(out)


def _is_factor(kwargs: dict[str, Any], target: Tensor) -> bool:
    """Return whether named arguments are a number ``alpha`` alone, by which NumPy multiplies the other operand as it is."""
    return type(kwargs.get("alpha")) in (int, float) and len(kwargs) == 1 and target._array.dtype.kind == "f"


def _any_requires_grad(*operands: Any) -> bool:
    return any(
        _any_requires_grad(*operand) if isinstance(operand, tuple) else getattr(operand, "_requires_grad", False)
        for operand in operands
    )
