"""Pooling: which elements it takes, of NaN, ties and integers, too, and the windows of fractional pooling."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.core import randn, tensor

F = nn.functional
pytestmark = pytest.mark.usefixtures("seeded")


@pytest.mark.parametrize("length, kernel, stride", [(6, 2, 2), (7, 2, 2), (7, 2, 3), (6, 3, 3), (7, 3, 2), (5, 1, 2)])
def test_max_pool_puts_gradients_where_the_largest_element_is(length, kernel, stride):
    x = randn(40, 3, length, length, dtype="float64", requires_grad=True)
    out = F.max_pool2d(x, kernel, stride)
    g = randn(*out.shape, dtype="float64")
    out.backward(g)
    expected = np.zeros(x.shape)
    for stop in np.ndindex(*out.shape[2:]):
        first = [stride * each for each in stop]
        part = (..., *(slice(start, start + kernel) for start in first))
        seen = x.detach().numpy()[part]
        chosen = seen == seen.max(axis=(2, 3), keepdims=True)
        expected[part] += np.where(chosen, g.numpy()[(..., *stop)][..., None, None], 0)
        np.testing.assert_array_equal(out.detach().numpy()[(..., *stop)], seen.max(axis=(2, 3)))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_results_of_pooling_are_in_order_whatever_the_input_is():
    x = randn(2, 6, 5, 3).permute(0, 3, 1, 2)
    for pooled in (F.max_pool2d(x, 2), F.avg_pool2d(x, 2)):
        assert pooled.is_contiguous() and pooled.view(2, -1).shape == (2, 18)


def test_max_pool_of_nan_and_ties_and_lowest():
    x = tensor([[[1.0, float("nan"), 3.0, 3.0, float("-inf"), float("-inf")]]], requires_grad=True)
    values, places = F.max_pool1d(x, 2, return_indices=True)
    np.testing.assert_array_equal(values.detach().numpy(), [[[np.nan, 3, -np.inf]]])
    assert places.tolist() == [[[1, 2, 4]]]
    values[..., 1].sum().backward()
    assert x.grad.tolist() == [[[0, 0, 1, 0, 0, 0]]]
    _, places = F.max_pool1d(tensor([[[float("-inf"), 1.0, 2.0]]]), 3, 2, padding=1, return_indices=True)
    assert places.tolist() == [[[1, 2]]]


def test_max_pool_of_integers():
    assert F.max_pool1d(tensor([[-3, -5, -1]]), 2, padding=1).tolist() == [[-3, -1]]


def test_fractional_pooling_begins_windows_where_pytorch_does():
    samples = tg.tensor([[[0.3, 0.7]]])
    largest, places = F.fractional_max_pool2d(
        tg.arange(49.0).reshape(1, 1, 7, 7), 2, output_size=(3, 4), return_indices=True, _random_samples=samples
    )
    assert places.tolist() == [[[[8, 10, 11, 13], [29, 31, 32, 34], [43, 45, 46, 48]]]]
    assert largest.tolist() == places.tolist()


def test_fractional_pooling_draws_its_windows():
    x = tg.rand(3, 2, 9, 9, 9)
    layer = nn.FractionalMaxPool3d(2, output_ratio=0.5, return_indices=True)
    largest, places = layer(x)
    assert largest.shape == (3, 2, 4, 4, 4)
    assert (x.flatten(2).gather(2, places.flatten(2)) == largest.flatten(2)).all()
    assert any((layer(x)[1] != places).any() for _ in range(9))


def test_bad_arguments_of_fractional_pooling():
    x = tg.rand(1, 1, 4, 4)
    with pytest.raises(ValueError, match="either output_size or output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(ValueError, match="either output_size or output_ratio"):
        nn.FractionalMaxPool2d(2, 2, 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.fractional_max_pool2d(x, 2, output_ratio=1.5)
    with pytest.raises(ValueError, match="do not fit into an image"):
        F.fractional_max_pool2d(x, 2, output_size=4)
    with pytest.raises(ValueError, match="must have shape"):
        F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=tg.rand(1, 1, 3))
