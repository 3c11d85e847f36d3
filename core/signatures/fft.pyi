"""Functions of ``telegrad.fft``: written by ``python -m telegrad.core.signatures.write``; do not edit."""

from ..ops.spectral.fourier import fft_fft as fft
from ..ops.spectral.fourier import fft_fft2 as fft2
from ..ops.spectral.fourier import fft_fftn as fftn
from ..ops.spectral.fourier import fft_hfft as hfft
from ..ops.spectral.fourier import fft_hfft2 as hfft2
from ..ops.spectral.fourier import fft_hfftn as hfftn
from ..ops.spectral.fourier import fft_ifft as ifft
from ..ops.spectral.fourier import fft_ifft2 as ifft2
from ..ops.spectral.fourier import fft_ifftn as ifftn
from ..ops.spectral.fourier import fft_ihfft as ihfft
from ..ops.spectral.fourier import fft_ihfft2 as ihfft2
from ..ops.spectral.fourier import fft_ihfftn as ihfftn
from ..ops.spectral.fourier import fft_irfft as irfft
from ..ops.spectral.fourier import fft_irfft2 as irfft2
from ..ops.spectral.fourier import fft_irfftn as irfftn
from ..ops.spectral.fourier import fft_rfft as rfft
from ..ops.spectral.fourier import fft_rfft2 as rfft2
from ..ops.spectral.fourier import fft_rfftn as rfftn
from ..ops.spectral.frequencies import fft_fftshift as fftshift
from ..ops.spectral.frequencies import fft_ifftshift as ifftshift
from ..ops.spectral.frequencies import fftfreq as fftfreq
from ..ops.spectral.frequencies import rfftfreq as rfftfreq

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
