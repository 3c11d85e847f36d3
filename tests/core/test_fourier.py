"""Fourier transforms: arguments, errors, signals that come back. tools/ops/fourier.py checks values and gradients."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import fft


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize(("there", "back"), [("fft", "ifft"), ("rfft", "irfft"), ("ihfft", "hfft")])
def test_an_inverse_gives_the_signal_back(there, back, norm):
    signal = tg.randn(3, 7, dtype=tg.float64)
    spectrum = getattr(fft, there)(signal, norm=norm)
    again = getattr(fft, back)(spectrum, 7, norm=norm) if there != "fft" else fft.ifft(spectrum, norm=norm).real
    assert tg.allclose(again, signal)


def test_single_precision_stays_single():
    assert fft.fft(tg.randn(4)).dtype == tg.complex64
    assert fft.irfft(fft.rfft(tg.randn(4))).dtype == tg.float32
    assert fft.fft(tg.arange(4)).dtype == tg.complex64


def test_lengths_of_minus_one_stay():
    assert fft.fftn(tg.ones(4, 5, 6), (-1, 3)).shape == (4, 5, 3)
    assert fft.irfft2(tg.ones(4, 5), (2, -1)).shape == (2, 8)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: fft.fft(tg.ones(0)), ValueError, "at least one element"),
        (lambda: fft.fft(tg.ones(3), n=0), ValueError, "at least one element"),
        (lambda: fft.fft(tg.tensor(1.0)), IndexError, "0-d"),
        (lambda: fft.fft(tg.ones(3), dim=1), IndexError, "out of range"),
        (lambda: fft.fft(tg.ones(3), norm="half"), ValueError, "norm must be one of"),
        (lambda: fft.rfft(tg.ones(3, dtype=tg.complex64)), TypeError, "real numbers"),
        (lambda: fft.fft(tg.ones(4, dtype=tg.float16)), TypeError, "float16"),
        (lambda: fft.fftn(tg.ones(3, 3), (2, 2, 2)), ValueError, "more lengths.*you gave 3"),
        (lambda: fft.fftn(tg.ones(3, 3), (2,), (0, 1)), ValueError, "one length for each"),
        (lambda: fft.fftfreq(0), ValueError, "at least one sample"),
        (lambda: tg.stft(tg.ones(20), 8), ValueError, "return_complex"),
        (lambda: tg.stft(tg.ones(20), 8, window=tg.ones(7), return_complex=True), ValueError, "window must have shape"),
        (lambda: tg.stft(tg.ones(4), 8, center=False, return_complex=True), ValueError, "more than the signal has"),
        (lambda: tg.istft(tg.ones(5, 3), 8), TypeError, "complex spectra"),
        (lambda: tg.istft(tg.ones(4, 3, dtype=tg.complex64), 16), ValueError, "frequencies"),
    ],
)
def test_errors_say_what_to_do(call, kind, words):
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, RuntimeError | IndexError), "what PyTorch's except clauses catch"


def test_a_signal_comes_back_from_its_spectrogram():
    signal = tg.randn(2, 64, dtype=tg.float64)
    window = tg.signal.windows.hann(16, sym=False, dtype=tg.float64)
    spectra = tg.stft(signal, 16, 4, window=window, return_complex=True)
    assert spectra.shape == (2, 9, 17)
    assert tg.allclose(tg.istft(spectra, 16, 4, window=window), signal)
    with pytest.warns(UserWarning, match="zeros follow"):
        assert tg.istft(spectra, 16, 4, window=window, length=100).shape == (2, 100)


def test_windows_that_do_not_overlap_cannot_be_undone():
    window = tg.signal.windows.hann(8, dtype=tg.float64)
    spectra = tg.stft(tg.ones(32, dtype=tg.float64), 8, 8, window=window, return_complex=True)
    with pytest.raises(ValueError, match="overlap more"):
        tg.istft(spectra, 8, 8, window=window)


def test_windows_are_scipys():
    hann = tg.signal.windows.hann(6, dtype=tg.float64).numpy()
    np.testing.assert_allclose(hann, np.hanning(6), atol=1e-15)
    np.testing.assert_allclose(tg.signal.windows.kaiser(6, beta=3.0, dtype=tg.float64).numpy(), np.kaiser(6, 3.0))
    assert tg.signal.windows.gaussian(1).tolist() == [1.0]
    with pytest.raises(TypeError, match="std"):
        tg.signal.windows.gaussian(5, beta=1.0)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft"])
@pytest.mark.parametrize("length", [4, 5000])
def test_infinity_gives_nan_without_a_warning(name, length, recwarn):
    spectrum = getattr(fft, name)(tg.full((length,), float("inf")))
    assert not recwarn.list
    assert not tg.isfinite(tg.abs(spectrum)).all()
