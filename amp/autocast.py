"""``autocast``: a block or function whose operations choose their own precision."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from . import state
from .policies import LOWER

F = TypeVar("F", bound=Callable[..., Any])


def is_autocast_available(device_type: str) -> bool:
    """Return whether ``autocast`` works on this kind of device: on the CPU."""
    return state.kind_of(device_type) == "cpu"


class autocast:  # noqa: N801 - PyTorch's name
    """A ``with`` block, or a decorator, inside which operations choose their precision (``torch.autocast``).

    Products of matrices, convolutions and attention convert float32 to ``dtype``; losses, decompositions and Fourier
    transforms convert ``dtype`` to float32; joining takes the widest; everything else computes in the dtype that it is given.
    float64 stays. Results take half the memory; it saves no time, because NumPy's products are computed in float32 and rounded.
    The lists are PyTorch's for the CPU. In-place forms and ``out=`` are not converted. It is for the forward
    pass: run ``backward()`` outside. Blocks nest, and hold for this thread or asyncio task.

    Args:
        device_type: "cpu". Another device gives a warning, and the block has no effect.
        dtype: bfloat16 or float16; that of ``get_autocast_dtype`` if ``None``.
        enabled: ``False`` makes a block without conversions, inside another one, too.
        cache_enabled: accepted for PyTorch's programs: weights are converted each time.

    Raises:
        ImportError: ``dtype`` is bfloat16, and ``ml_dtypes`` is not installed.
        ValueError: ``device_type`` is no string.

    Example:
        >>> import telegrad as tg
        >>> with tg.autocast("cpu"):
        ...     product = tg.ones(2, 2) @ tg.ones(2, 2)
        >>> print(product.dtype, (product + tg.ones(2, 2)).dtype)
        bfloat16 float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: npt.DTypeLike | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = state.kind_of(device_type)
        self.fast_dtype = state.get_autocast_dtype(device_type) if dtype is None else np.dtype(dtype)
        self._enabled = enabled and self._is_possible()
        self._cache_enabled = cache_enabled
        self._former: list[state.State] = []

    def _is_possible(self) -> bool:
        if not is_autocast_available(self.device):
            warnings.warn(f"there is no device {self.device!r}: autocast is disabled", stacklevel=3)
        elif self.fast_dtype.name not in LOWER:
            warnings.warn(f"autocast is for {' and '.join(LOWER)}, not {self.fast_dtype}: it is disabled", stacklevel=3)
        else:
            return True
        return False

    def __enter__(self) -> autocast:
        former = state.present()
        self._former.append(former)
        if self.device == "cpu":
            cache = former.cache_enabled if self._cache_enabled is None else self._cache_enabled
            state.change(state.State(self._enabled, self.fast_dtype, cache, former.nesting + 1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        state.change(self._former.pop())

    def __call__(self, func: F) -> F:
        """Decorate ``func``, a coroutine function too, to run in such a block."""
        if not callable(func):
            raise TypeError(
                f"autocast() decorates functions, or is a with block, and you gave it {type(func).__name__}"
            )
        if inspect.iscoroutinefunction(func):

            @functools.wraps(func)
            async def later(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await func(*args, **kwargs)

            return cast("F", later)

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return func(*args, **kwargs)

        return cast("F", wrapper)

    def _again(self) -> autocast:
        # A fresh object for each call: the decorated function may run in several threads.
        other = object.__new__(type(self))
        vars(other).update(vars(self), _former=[])
        return other
