"""Interpolation and sampling of images at points of a grid."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.core import arange, autograd, randn, tensor, zeros
from telegrad.nn.functional import grid_corners

F = nn.functional
pytestmark = pytest.mark.usefixtures("seeded")


def test_interpolation_keeps_infinities_apart():
    x = tensor([[[1.0, float("inf"), 2.0, 4.0, 6.0]]])
    assert F.interpolate(x, size=10).numpy()[0, 0, [0, 1, 4, 9]].tolist() == [1, 1, 2, 6]
    assert F.adaptive_avg_pool1d(x, 2).tolist() == [[[float("inf"), 4.0]]]


def test_tensors_of_resized_images_are_plain():
    assert F.interpolate(arange(4.0).reshape(1, 1, 2, 2), scale_factor=2).tolist()[0][0][0] == [0, 0, 1, 1]
    assert F.interpolate(tensor([[[1, 2]]]), size=4).dtype == np.int64


def test_images_of_bytes_are_rounded_after_each_dimension():
    x = tg.tensor([[[[0, 10, 255], [3, 100, 7]]]], dtype=tg.uint8)
    linear, cubic = (F.interpolate(x, size=(3, 5), mode=mode)[0, 0].tolist() for mode in ("bilinear", "bicubic"))
    assert linear == [[0, 4, 10, 157, 255], [2, 23, 55, 101, 131], [3, 42, 100, 44, 7]]
    assert cubic == [[0, 0, 2, 171, 255], [0, 24, 55, 106, 128], [0, 51, 108, 40, 0]]


def test_older_names_of_interpolation():
    x = tg.rand(1, 1, 3, 3)
    assert (F.upsample_bilinear(x, 5) == F.interpolate(x, 5, mode="bilinear", align_corners=True)).all()
    assert (F.upsample_nearest(x, scale_factor=2) == F.interpolate(x, scale_factor=2)).all()
    assert (F.upsample(x, 4, mode="bicubic") == F.interpolate(x, 4, mode="bicubic")).all()


def test_bicubic_sampling_of_a_plain_grid_is_bicubic_resizing():
    x = randn(2, 3, 5, 4, dtype=tg.float64)
    grid = F.affine_grid(tg.eye(2, 3, dtype=tg.float64).expand(2, 2, 3), (2, 3, 9, 7), align_corners=True)
    expected = F.interpolate(x, (9, 7), mode="bicubic", align_corners=True)
    found = F.grid_sample(x, grid, mode="bicubic", padding_mode="border", align_corners=True)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_bicubic_sampling(padding):
    x = randn(1, 2, 4, 4, dtype=tg.float64, requires_grad=True)
    grid = (tg.rand(1, 3, 3, 2, dtype=tg.float64) * 2.4 - 1.2).requires_grad_()
    assert autograd.gradcheck(
        lambda x, grid: F.grid_sample(x, grid, "bicubic", padding, align_corners=False), (x, grid)
    )
    with pytest.raises(ValueError, match="for images"):
        F.grid_sample(zeros(1, 1, 2, 2, 2), zeros(1, 2, 2, 2, 3), "bicubic", padding, align_corners=False)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_adds_to_the_same_gradients_in_parts_of_the_batch(monkeypatch, dims, padding):
    x = randn(3, 2, *(3, 4, 2)[:dims]).to(tg.float64).requires_grad_()
    grid = (tg.rand(3, *(2, 3, 2)[:dims], dims) * 3 - 1.5).to(tg.float64).requires_grad_()

    def passes():
        result = F.grid_sample(x, grid, padding_mode=padding, align_corners=False)
        return [result, *autograd.grad((result**2).sum(), (x, grid))]

    whole = passes()
    monkeypatch.setattr(grid_corners, "PART", 1)
    for one, other in zip(whole, passes()):
        np.testing.assert_array_equal(one.detach(), other.detach())


@pytest.mark.parametrize("shape", [(2, 3, 1, 4), (2, 3, 4, 1), (2, 1, 1, 1), (0, 2, 3, 3), (2, 0, 3, 3)])
def test_grid_sample_of_images_of_one_pixel_a_row_or_of_none(shape):
    x = randn(*shape).to(tg.float64).requires_grad_()
    grid = (tg.rand(shape[0], 3, 5, 2) * 3 - 1.5).to(tg.float64).requires_grad_()
    lengths = tensor(shape[:1:-1], dtype=tg.float64)
    framed = F.pad(x, (2, 2, 2, 2))
    results = (
        F.grid_sample(x, grid, align_corners=False),
        F.grid_sample(framed, grid * lengths / (lengths + 4), align_corners=False),
    )
    ours, theirs = (autograd.grad((result**2).sum(), (x, grid)) for result in results)
    for one, other in zip((results[0], *ours), (results[1], *theirs)):
        np.testing.assert_allclose(one.detach(), other.detach(), atol=1e-12)


def test_grid_sample_beyond_all_bounds():
    x, grid = tg.ones(1, 1, 2, 2), tensor([[[[np.inf, 0.0], [-np.inf, 0.0], [np.nan, 0.0], [1e30, 0.0]]]])
    assert F.grid_sample(x, grid, align_corners=False)[0, 0, 0, 3] == 0
    x.requires_grad_()
    F.grid_sample(x, grid[:, :, 2:], align_corners=False).sum().backward()
    np.testing.assert_array_equal(x.grad, np.zeros((1, 1, 2, 2)))  # as PyTorch's
    nearest = F.grid_sample(x, grid, "nearest", align_corners=False)
    assert nearest.tolist() == [[[[0, 0, 0, 0]]]]


def test_grid_sample_adds_many_points_plane_by_plane_to_the_same_gradients(monkeypatch):
    x = randn(2, 3, 9, 7).requires_grad_()
    grid = (tg.rand(2, 40, 30, 2) * 3 - 1.5).requires_grad_()

    def passes():
        result = F.grid_sample(x, grid, align_corners=False)
        return [result, *autograd.grad((result**2).sum(), (x, grid))]

    found = passes()
    assert grid_corners.MANY <= 4 * 40 * 30
    monkeypatch.setattr(grid_corners, "MANY", 1 << 30)
    for one, other in zip(found, passes()):
        np.testing.assert_array_equal(one.detach(), other.detach())
