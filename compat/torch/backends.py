"""Switches of PyTorch's libraries of kernels (``torch.backends``): they can be set, and change nothing."""

from __future__ import annotations


class Backend:
    """Library that is not there. Attributes can be set, as programs do to choose kernels."""

    enabled = False
    benchmark = False
    deterministic = False
    allow_tf32 = False

    def is_available(self) -> bool:
        """Return ``False``."""
        return False

    is_built = is_available


cudnn, mkl, mkldnn, mps, openmp, quantized = (Backend() for _ in range(6))
