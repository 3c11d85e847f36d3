"""histogramdd: against NumPy's, its ends and its errors."""

import numpy as np
import pytest
import telegrad as tg


@pytest.fixture
def points():
    tg.manual_seed(1)
    return tg.rand(50, 3, dtype=tg.float64)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("limits", [None, (0.1, 0.9, 0.0, 1.0, 0.2, 0.5)])
def test_boxes_of_points(points, density, limits):
    weight = tg.linspace(0.1, 1, 50, dtype=tg.float64)
    found = tg.histogramdd(points, [2, 3, 4], range=limits, weight=weight, density=density)
    pairs = None if limits is None else list(zip(limits[::2], limits[1::2]))
    expected, ends = np.histogramdd(points.numpy(), (2, 3, 4), pairs, density, weight.numpy())
    np.testing.assert_allclose(found.hist, expected)
    for own, known in zip(found.bin_edges, ends):
        np.testing.assert_allclose(own, known)


def test_ends_of_bins_can_be_given(points):
    ends = [tg.tensor([0.0, 0.5, 1.0], dtype=tg.float64)] * 3
    assert tg.histogramdd(points, ends).hist.sum() == 50
    assert tg.histogramdd(tg.tensor([[0.5], [1.0], [1.5]]), [tg.tensor([0.0, 0.5, 1.0])]).hist.tolist() == [0, 2]


def test_no_points_and_equal_ones():
    assert tg.histogramdd(tg.zeros(0, 2), 2).hist.tolist() == [[0, 0], [0, 0]]
    assert tg.histogramdd(tg.ones(3, 1), 2).bin_edges[0].tolist() == [0.5, 1, 1.5]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tg.histogramdd(tg.ones(3), 2), ValueError, r"points, shape \(..., D\)"),
        (lambda: tg.histogramdd(tg.ones(3, 2), [2]), ValueError, "as many bins"),
        (lambda: tg.histogramdd(tg.ones(3, 2), 2, range=(0, 1)), ValueError, "a range of 4 numbers"),
        (lambda: tg.histogramdd(tg.ones(3, 2), 0), ValueError, "at least one bin"),
        (lambda: tg.histogramdd(tg.ones(3, 2), 2, weight=tg.ones(2)), ValueError, "weights of shape"),
        (lambda: tg.histogramdd(tg.tensor([[1]]), 2), TypeError, "floating-point"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
