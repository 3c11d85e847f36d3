"""Mixed precision on GPUs (``torch.cuda.amp``): there are none, so both classes warn and have no effect, as in PyTorch."""

from __future__ import annotations

from typing import Any

import telegrad

from ... import amp
from ...amp import custom_bwd as custom_bwd
from ...amp import custom_fwd as custom_fwd


class autocast(amp.autocast):  # noqa: N801 - PyTorch's name
    """Autocast for GPUs.

    Args:
        enabled: no effect without a GPU.
        dtype: no effect without a GPU.
        cache_enabled: no effect without a GPU.
    """

    def __init__(self, enabled: bool = True, dtype: Any = telegrad.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """Scale of losses for GPUs.

    Args:
        init_scale, growth_factor, backoff_factor, growth_interval: no effect without a GPU.
        enabled: no effect without a GPU.

    Raises:
        ValueError: a factor is outside its bounds.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
