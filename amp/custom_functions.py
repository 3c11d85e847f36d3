"""``custom_fwd`` and ``custom_bwd``: the precision of custom functions of autograd under autocast."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.extend import Tensor
from . import state
from .autocast import autocast


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: npt.DTypeLike | None = None
) -> Any:
    """Decorate the ``forward`` of an ``autograd.Function``; below ``@staticmethod``.

    Args:
        fwd: the function.
        device_type: "cpu".
        cast_inputs: dtype to which, under autocast, floating-point arguments are converted, but for float64; ``forward`` then
            runs without autocast. With ``None`` it runs under the autocast of its caller.

    Raises:
        ValueError: ``device_type`` is no string.
    """
    state.kind_of(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        enabled = state.is_autocast_enabled(device_type)
        ctx._dtype = state.get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_converted(args, cast_inputs), **_converted(kwargs, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorate the ``backward`` of a function whose ``forward`` has ``custom_fwd``, to run under the same autocast.

    Args:
        bwd: the function.
        device_type: "cpu".

    Raises:
        ValueError: ``device_type`` is no string.
    """
    state.kind_of(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward


def _converted(value: Any, dtype: npt.DTypeLike) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype != np.float64 else value
    if isinstance(value, Mapping):
        return {key: _converted(part, dtype) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)([_converted(part, dtype) for part in value])
    return value
