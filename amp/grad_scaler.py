"""``GradScaler``: losses multiplied by a factor, so that small gradients do not become 0 in float16."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import numpy as np

from ..core import float32, full, no_grad
from ..core.extend import Tensor

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Scale of losses that grows while gradients are finite, and shrinks when they are not (``torch.amp.GradScaler``).

    For each step: ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``, ``scaler.update()``. ``step`` divides the
    gradients by the scale, and leaves the optimizer's step out if one of them is infinite or nan.

    Args:
        device: "cpu". Another device gives a warning, and the scaler has no effect.
        init_scale: the scale at first.
        growth_factor: factor by which it grows after ``growth_interval`` finite steps, above 1.
        backoff_factor: factor by which it shrinks after a step that was left out, below 1.
        growth_interval: number of steps.
        enabled: ``False`` makes a scaler that does nothing but call ``optimizer.step()``.

    Raises:
        ValueError: a factor is outside its bounds.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if growth_factor <= 1.0 or backoff_factor >= 1.0:
            raise ValueError(
                f"GradScaler needs growth_factor > 1 and backoff_factor < 1, and you gave {growth_factor} and {backoff_factor}"
            )
        if enabled and not str(device).startswith("cpu"):
            warnings.warn(f"there is no device {str(device)!r}: GradScaler is disabled", stacklevel=2)
            enabled = False
        self._enabled = enabled
        self._scale, self._finite_steps = float(init_scale), 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        # Of each optimizer since the last update(): what was done, and whether its gradients were finite.
        self._optimizers: weakref.WeakKeyDictionary[Any, tuple[str, bool]] = weakref.WeakKeyDictionary()

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or a tuple, list or other iterable of tensors, times the scale.

        Raises:
            TypeError: there is something else in it.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * full((), self._scale, dtype=float32)
        if isinstance(outputs, (tuple, list)):
            return type(outputs)([self.scale(each) for each in outputs])
        if hasattr(outputs, "__iter__") and not isinstance(outputs, str):
            return map(self.scale, outputs)
        raise TypeError(f"scale() takes tensors, and you gave {type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to clip them before ``step``.

        Raises:
            RuntimeError: it was done already since the last ``update()``, or ``step()`` was called.
            ValueError: a gradient is of float16, which cannot hold it without the scale.
        """
        if not self._enabled:
            return
        stage, _ = self._optimizers.get(optimizer, (READY, True))
        if stage == UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update()")
        if stage == STEPPED:
            raise RuntimeError("unscale_() is being called after step()")
        self._optimizers[optimizer] = UNSCALED, _unscale(optimizer, 1.0 / self._scale)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients, unless ``unscale_`` has done so, and call ``optimizer.step()`` if they are finite.

        Args:
            optimizer: the optimizer.
            args, kwargs: of its ``step``, without a closure.

        Returns:
            The result of its ``step``; ``None`` if that was left out.

        Raises:
            RuntimeError: it was called already since the last ``update()``, or there is a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or kwargs.get("closure") is not None:
            raise RuntimeError("step() takes no closure: a scaler cannot scale the losses that a closure computes")
        if self._optimizers.get(optimizer, (READY, True))[0] == STEPPED:
            raise RuntimeError("step() has already been called since the last update()")
        if optimizer not in self._optimizers:
            self.unscale_(optimizer)
        finite = self._optimizers[optimizer][1]
        self._optimizers[optimizer] = STEPPED, finite
        return optimizer.step(*args, **kwargs) if finite else None

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Let the scale grow or shrink by what happened since the last call, or set it.

        Args:
            new_scale: the new scale.

        Raises:
            RuntimeError: there is no new scale, and no optimizer has stepped.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._optimizers:
            raise RuntimeError("update() is called after step(), and no optimizer has stepped since the last update()")
        elif all(finite for _, finite in self._optimizers.values()):
            self._finite_steps += 1
            if self._finite_steps == self._growth_interval:
                grown = self._scale * self._growth_factor
                self._scale = grown if grown < np.finfo(np.float32).max else self._scale
                self._finite_steps = 0
        else:
            self._scale, self._finite_steps = self._scale * self._backoff_factor, 0
        self._optimizers.clear()

    def get_scale(self) -> float:
        """Return the scale; 1 if the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of finite steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of finite steps after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return whether the scaler has an effect."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint; empty if the scaler is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._finite_steps,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned.

        Raises:
            RuntimeError: it is empty, of a scaler that was not enabled.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("the state is empty: it was saved by a scaler that was not enabled")
        self._scale = float(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._finite_steps = state_dict["growth_interval"], int(state_dict["_growth_tracker"])


def _unscale(optimizer: Any, factor: float) -> bool:
    """Multiply all gradients by ``factor`` in place; return whether they are finite."""
    finite = True
    with no_grad():
        for parameter in (each for group in optimizer.param_groups for each in group["params"]):
            if parameter.grad is None:
                continue
            if parameter.grad.dtype == np.float16:
                raise ValueError("a gradient of float16 cannot be unscaled: keep the parameters in float32")
            parameter.grad.mul_(factor)
            values = parameter.grad.coalesce().values() if parameter.grad.is_sparse else parameter.grad
            finite = finite and bool(values.isfinite().all())
    return finite
