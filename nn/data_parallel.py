"""``DataParallel``: PyTorch's wrapper for the GPUs of one process, on the one device that there is here."""

from __future__ import annotations

from typing import Any

from .module import Module


class DataParallel(Module):
    """Module that calls another, as PyTorch's does on a machine without a GPU (``torch.nn.DataParallel``).

    Its ``state_dict`` has the names ``module.weight`` and so on. Several processes train one module with
    ``nn.parallel.DistributedDataParallel``.

    Args:
        module: the module.
        device_ids: not used: all of the batch is computed on the CPU.
        output_device: not used.
        dim: not used.

    Attributes:
        module: the module.
        device_ids: an empty list.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return what the module returns."""
        return self.module(*inputs, **kwargs)
