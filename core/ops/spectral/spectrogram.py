"""``stft`` and ``istft``: the spectra of overlapping frames of a signal, and the signal of spectra (Griffin and Lim 1984)."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from ...tensors import Tensor
from ..create.filled_tensors import ones
from ..elementwise.complex_numbers import view_as_real
from ..shape.padding import pad
from ..shape.strided import overlap_add
from ..table.operation import operation
from .fourier import fft_fft, fft_ifft, fft_irfft, fft_rfft

EMPTY = 1e-11  # an envelope below this cannot be divided by


class _Frames(NamedTuple):
    """Frames of ``size`` elements, ``hop`` apart, each multiplied with ``window``."""

    size: int
    hop: int
    window: Tensor


def _plan(input: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None) -> _Frames:
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if n_fft < 1 or hop < 1 or not 0 < length <= n_fft:
        raise ValueError(
            f"a transform needs n_fft > 0, hop_length > 0 and 0 < win_length <= n_fft; you gave n_fft={n_fft}, "
            f"hop_length={hop} and win_length={length}"
        )
    if window is None:
        window = ones(length, dtype=input.real.dtype)
    if window.shape != (length,):
        raise ValueError(f"window must have shape ({length},), that of win_length; its shape is {tuple(window.shape)}")
    before = (n_fft - length) // 2
    return _Frames(n_fft, hop, pad(window, (before, n_fft - length - before)))


@operation(function=True, method=True)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the short-time Fourier transform: the spectrum of each frame of a signal.

    Args:
        input: a signal of shape (L,), or a batch (B, L); real or complex.
        n_fft: elements of a frame.
        hop_length: distance of frames; ``n_fft // 4`` by default.
        win_length: length of the window; ``n_fft`` by default. Zeros on both sides fill it up to ``n_fft``.
        window: what each frame is multiplied with, shape (win_length,); ones by default.
        center: put frame t around element ``t * hop_length``; the signal is padded with ``pad_mode`` for that.
        pad_mode: "reflect", "constant", "replicate" or "circular".
        normalized: divide by the square root of ``n_fft``.
        onesided: keep the first ``n_fft // 2 + 1`` frequencies; by default if signal and window are real.
        return_complex: complex numbers; ``False`` gives a last dimension of real and imaginary part. Required for real signals.
        align_to_window: accepted as ``None`` or ``False``.

    Returns:
        Shape (B, frequencies, frames), without B for a single signal.

    Raises:
        ValueError: a length that makes no sense, or ``onesided`` of complex numbers.
    """
    if input.ndim not in (1, 2):
        raise ValueError(f"stft() takes a signal (L,) or a batch (B, L), and the shape is {tuple(input.shape)}")
    if align_to_window:
        raise ValueError("stft() has no align_to_window=True; leave it out, and pad the signal as you need it")
    frames = _plan(input, n_fft, hop_length, win_length, window)
    is_complex = input.is_complex() or frames.window.is_complex()
    if return_complex is None and not is_complex:
        raise ValueError("stft() needs return_complex for a real signal; write return_complex=True")
    half = not is_complex if onesided is None else onesided
    if half and is_complex:
        raise ValueError("onesided=True needs a real signal and a real window; complex spectra have no mirrored half")
    signal = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        side = n_fft // 2
        signal = pad(signal.unsqueeze(1), (side, side), pad_mode).squeeze(1)
    if signal.shape[-1] < n_fft:
        raise ValueError(f"n_fft={n_fft} is more than the signal has, {signal.shape[-1]} elements")
    cut = signal.unfold(-1, n_fft, frames.hop) * frames.window
    norm = "ortho" if normalized else "backward"
    spectra = (fft_rfft if half else fft_fft)(cut, norm=norm).transpose(1, 2)
    spectra = spectra if input.ndim == 2 else spectra.squeeze(0)
    return view_as_real(spectra.contiguous()) if return_complex is False else spectra


@operation(function=True, method=True)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal whose ``stft`` is nearest to ``input``, in the sense of least squares.

    Args:
        input: complex, shape (frequencies, frames) or (B, frequencies, frames).
        length: cut the signal to this length, or fill it up with zeros; otherwise it ends with the last frame.
        return_complex: a complex signal, of both sides of the spectrum.
        n_fft, hop_length, win_length, window, center, normalized, onesided: as of ``stft``.

    Raises:
        TypeError: real input.
        ValueError: shapes or lengths that make no sense, or windows that leave a part of the signal out.
    """
    if not input.is_complex():
        raise TypeError(f"istft() takes complex spectra, and the input is {input.dtype}; see view_as_complex")
    if input.ndim not in (2, 3) or not input.numel():
        raise ValueError(
            f"istft() takes (frequencies, frames) or a batch of such, and the shape is {tuple(input.shape)}"
        )
    frames = _plan(input, n_fft, hop_length, win_length, window)
    half = input.shape[-2] != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if half else n_fft
    if input.shape[-2] != expected:
        raise ValueError(f"n_fft={n_fft} has {expected} frequencies (onesided={half}), and the input {input.shape[-2]}")
    if return_complex and half:
        raise ValueError("return_complex=True needs both sides of the spectrum; give onesided=False")
    spectra = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    norm = "ortho" if normalized else "backward"
    # A real signal needs the first half of the spectrum only.
    cut = (
        fft_ifft(spectra, norm=norm) if return_complex else fft_irfft(spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    )
    signal = _added(cut, frames, center, length)
    return signal if input.ndim == 3 else signal.squeeze(0)


def _added(cut: Tensor, frames: _Frames, center: bool, length: int | None) -> Tensor:
    """Return the sum of overlapping frames, divided by that of their windows, without what was padded."""
    total = frames.size + frames.hop * (cut.shape[1] - 1)
    start = frames.size // 2 if center else 0
    end = start + length if length is not None else total - start
    inside = slice(start, min(end, total))
    signal = overlap_add(cut * frames.window, total, frames.hop)[:, inside]
    squares = (frames.window * frames.window).expand(cut.shape[1], frames.size)
    envelope = overlap_add(squares, total, frames.hop)[inside]
    if not envelope.numel() or float(envelope.abs().min()) <= EMPTY:
        raise ValueError(
            "the windows leave elements of the signal out, which cannot be found again; let them overlap more"
        )
    signal = signal / envelope
    if end > total:
        warnings.warn(
            f"the signal ends after {total - start} elements, and zeros follow up to length={length}", stacklevel=4
        )
        signal = pad(signal, (0, end - total))
    return signal
