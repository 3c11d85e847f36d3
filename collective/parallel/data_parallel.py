"""``data_parallel``: PyTorch's function for the GPUs of one process, on the one device that there is here."""

from __future__ import annotations

from typing import Any

from ...nn import DataParallel as DataParallel
from ...nn import Module


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Return what a module returns for a batch (``torch.nn.parallel.data_parallel``), computed on the CPU.

    Args:
        module: the module.
        inputs: its argument, or a tuple of its arguments.
        device_ids, output_device, dim: not used.
        module_kwargs: its keyword arguments.
    """
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
