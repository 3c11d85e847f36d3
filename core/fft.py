"""``tg.fft``: discrete Fourier transforms under the names of ``torch.fft``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .creation import made
from .dtypes import get_default_dtype
from .operation import operation
from .ops.spectral.fourier import fft_fft as fft
from .ops.spectral.fourier import fft_fft2 as fft2
from .ops.spectral.fourier import fft_fftn as fftn
from .ops.spectral.fourier import fft_fftshift as fftshift
from .ops.spectral.fourier import fft_hfft as hfft
from .ops.spectral.fourier import fft_hfft2 as hfft2
from .ops.spectral.fourier import fft_hfftn as hfftn
from .ops.spectral.fourier import fft_ifft as ifft
from .ops.spectral.fourier import fft_ifft2 as ifft2
from .ops.spectral.fourier import fft_ifftn as ifftn
from .ops.spectral.fourier import fft_ifftshift as ifftshift
from .ops.spectral.fourier import fft_ihfft as ihfft
from .ops.spectral.fourier import fft_ihfft2 as ihfft2
from .ops.spectral.fourier import fft_ihfftn as ihfftn
from .ops.spectral.fourier import fft_irfft as irfft
from .ops.spectral.fourier import fft_irfft2 as irfft2
from .ops.spectral.fourier import fft_irfftn as irfftn
from .ops.spectral.fourier import fft_rfft as rfft
from .ops.spectral.fourier import fft_rfft2 as rfft2
from .ops.spectral.fourier import fft_rfftn as rfftn
from .tensors import Tensor
from .types import Array

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


@operation
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of ``fft``, in cycles per unit of ``d``, the distance between samples.

    Raises:
        ValueError: ``n`` is below 1.
    """
    return made(_frequencies(np.fft.fftfreq, n, d, dtype), requires_grad, device, out)


@operation
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of ``rfft`` of ``n`` numbers; see ``fftfreq``."""
    return made(_frequencies(np.fft.rfftfreq, n, d, dtype), requires_grad, device, out)


def _frequencies(table: Callable[[int, float], Array], n: int, d: float, dtype: npt.DTypeLike | None) -> Array:
    if n < 1:
        raise ValueError(f"frequencies need at least one sample, and you gave n={n}")
    return np.asarray(table(n, d)).astype(dtype or get_default_dtype())
