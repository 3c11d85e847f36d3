"""Convolution by rows that are copied once for each column of the window, against the sum over patches."""

import numpy as np
import pytest
from telegrad.core.ops.window import products, shifted_rows
from telegrad.core.ops.window.arguments import window_over
from telegrad.core.ops.window.window import overlap_add, padded, patches


@pytest.mark.parametrize("cache", [1 << 10, 1 << 13, 1 << 19])  # bands of rows; some samples; all of them
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int64"])
@pytest.mark.parametrize(
    "count, size, kernel, stride, padding, dilation",
    [
        (5, (14, 11), (3, 3), 1, 1, 1),
        (3, (12, 15), (5, 2), (1, 2), (2, 0), (1, 3)),
        (2, (17, 12), (4, 3), (3, 1), (5, 2), 1),
        (9, (3, 12), (3, 7), 2, (1, 5), 1),
        (1, (2, 2), (3, 1), 1, (3, 1), 1),
        (3, (14, 13), (3, 3), 1, 2, (2, 3)),
        (2, (19, 9), (2, 4), (1, 2), (3, 1), (4, 1)),
        (1, (1, 6), (3, 3), 1, (9, 1), (3, 1)),
    ],
)
def test_products_are_sums_over_patches(monkeypatch, cache, dtype, count, size, kernel, stride, padding, dilation):
    monkeypatch.setattr(shifted_rows, "CACHE", cache)
    window = window_over(size, kernel, stride, padding, dilation)
    values = np.random.default_rng(3)
    image, weight, output, bias = (
        values.integers(-3, 4, shape).astype(dtype)
        for shape in ((count, 6, *size), (4, 6, *kernel), (count, 4, *window.output_size), (4,))
    )
    assert shifted_rows.fits(window, 6, 4, 1)
    columns = patches(padded(image, window), window).astype("complex128" if dtype == "complex64" else "float64")
    out = products.convolve(image, weight, window, 1, bias)
    np.testing.assert_array_equal(out, np.einsum("ocij,ncijyx->noyx", weight, columns) + bias.reshape(-1, 1, 1))
    found = products.convolve_weight(output, image, window, 1)
    np.testing.assert_array_equal(found, np.einsum("noyx,ncijyx->ocij", output, columns))
    back = products.convolve_image(output, weight, window, 1)
    elements = (len(image), 6, *window.output_size)
    parts = np.einsum("noyx,ocij->ijncyx", output, weight).reshape(-1, *elements)
    np.testing.assert_array_equal(back, overlap_add(parts, image.shape, image.dtype, window))
    assert {out.dtype, found.dtype, back.dtype} == {np.dtype(dtype)}
    assert found.flags.c_contiguous


def test_a_batch_without_samples_has_a_weight_of_zeros():
    window = window_over((14, 14), (3, 3), 1, 1, 1)
    image, output = np.empty((0, 6, 14, 14)), np.empty((0, 4, 14, 14))
    assert not products.convolve_weight(output, image, window, 1).any()
    assert products.convolve(image, np.ones((4, 6, 3, 3)), window, 1).shape == output.shape
