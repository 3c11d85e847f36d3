"""Fourier transforms of real numbers: the whole spectrum and its gradient are those of the numbers as complex ones."""

import numpy as np
import pytest
import telegrad as tg
from telegrad.core.ops.spectral import whole_spectrum

SHAPES = [
    *[((5, 6), (0, 1)), ((4, 4), (1, 0)), ((3, 4, 5), (0, 1, 2)), ((3, 4, 5), (2, 0)), ((1,), (0,)), ((2, 7), (1,))],
    *[((66, 70), (0, 1)), ((3, 40, 41), (1, 2))],  # large: from half of the spectrum
]


@pytest.mark.parametrize("name", ["fftn", "ifftn"])
@pytest.mark.parametrize("shape, dim", SHAPES)
@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("small", [0, whole_spectrum._SMALL])
def test_real_numbers_give_the_spectrum_of_complex_ones(name, shape, dim, norm, small, monkeypatch):
    monkeypatch.setattr(whole_spectrum, "_SMALL", small)
    values = np.random.default_rng(0).standard_normal(shape)
    real = tg.tensor(values, requires_grad=True)
    other = tg.tensor(values + 0j, requires_grad=True)
    one, two = (getattr(tg.fft, name)(each, dim=dim, norm=norm) for each in (real, other))
    assert tg.allclose(one, two)
    gradient = tg.tensor(values * (1 - 2j))
    one.backward(gradient)
    two.backward(gradient)
    assert tg.allclose(real.grad, other.grad.real)


def test_half_precision_and_empty_tensors():
    with pytest.raises(TypeError, match="do not take float16"):
        tg.fft.fft(tg.ones(4).half())
    assert tg.fft.fft(tg.ones(0, 4)).shape == (0, 4)
