"""Mixed precision on GPUs (``torch.cuda.amp``): there are none, so both classes warn and have no effect, as in PyTorch."""

from __future__ import annotations

from functools import partialmethod
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
        init_scale, growth_factor, backoff_factor, growth_interval, enabled: as for ``amp.GradScaler``; no effect without a GPU.

    Raises:
        ValueError: a factor is outside its bounds.
    """

    __init__ = partialmethod(amp.GradScaler.__init__, "cuda")
