"""Checks of Fourier transforms in one and more dimensions, and of short-time Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import Tensor, fft, istft, signal, stft
from ...testing.ops import Make, OpCheck, Samples
from .shaping import of

EXEMPT = dict.fromkeys((*vars(signal.windows), "fftfreq", "rfftfreq"), "makes a tensor from numbers")

DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")
Shapes = tuple[tuple[int, ...], ...]
SHAPES: Shapes = ((5,), (4, 3), (2, 1, 6), (0, 4))


def spectra(*shapes: tuple[int, ...]) -> Samples:
    """Return samples of one complex tensor, for each of ``shapes``."""

    def samples(make: Make) -> list[tuple[Tensor]]:
        parts = [(make(*shape, signs=True), make(*shape, signs=True)) for shape in shapes]
        return [(Tensor(a.numpy(force=True) + 1j * b.numpy(force=True), True),) for a, b in parts]

    return samples


def _checks(kind: str, numbers: Callable[..., Samples]) -> list[OpCheck]:
    def one(name: str, variant: str, *args: Any, shapes: Shapes = SHAPES, **options: Any) -> OpCheck:
        ours: Callable[..., Any] = getattr(fft, name)
        reference: Callable[..., Any] | None = getattr(np.fft, name, None)
        return OpCheck(
            f"fft_{name}{variant}",
            lambda x: ours(x, *args, **options),
            numbers(*shapes),
            dtypes=DTYPES,
            reference=reference and (lambda x: reference(x, *args, **_numpys(options))),
        )

    return [
        one(kind, ""),
        one(kind, ":cut", 3, norm="ortho"),
        one(kind, ":filled", 8, norm="forward"),
        one(f"{kind}n", "", shapes=((4, 3), (2, 1, 6))),
        one(f"{kind}n", ":last", (4,), (-1,), norm="ortho"),
    ]


def _numpys(options: dict[str, Any]) -> dict[str, Any]:
    return {{"dim": "axes"}.get(key, key): value for key, value in options.items()}


def _planes(name: str, samples: Samples) -> OpCheck:
    return OpCheck(f"fft_{name}", lambda x: getattr(fft, name)(x.reshape(-1, 2), (3, 4)), samples, dtypes=DTYPES)


CHECKS = [
    *(check for kind in ("fft", "ifft", "irfft", "hfft") for check in _checks(kind, spectra)),
    *(check for kind in ("rfft", "ihfft") for check in _checks(kind, of)),
    *(_planes(name, of((4,), (3, 2))) for name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")),
    OpCheck("fft_fft:real", fft.fft, of(*SHAPES), dtypes=DTYPES, reference=np.fft.fft),
    OpCheck("fft_fftshift", fft.fftshift, of(*SHAPES), reference=np.fft.fftshift),
    OpCheck("fft_ifftshift", fft.ifftshift, of(*SHAPES), reference=np.fft.ifftshift),
    OpCheck(
        "stft",
        lambda x, window: stft(x, 6, 2, window=window, normalized=True, return_complex=True),
        lambda make: [(make(11, signs=True), make(6)), (make(2, 9, signs=True), make(6))],
        dtypes=("float32", "float64"),
    ),
    OpCheck(
        "istft",
        lambda x, y, window: istft(x + 1j * y, 6, 2, 5, window),
        lambda make: [(make(4, 3), make(4, 3), make(5)), (make(2, 4, 5), make(2, 4, 5), make(5))],
        dtypes=("float32", "float64"),
    ),
]
