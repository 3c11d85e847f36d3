"""Digits that the examples learn: complete, split in the same way every time, and equal to what their script makes."""

import numpy as np
import pytest
from telegrad.examples import digits, make_digits


def test_the_split_has_every_image_once():
    train_x, train_y, test_x, test_y = digits.load()
    assert train_x.shape == (1437, 8, 8) and test_x.shape == (360, 8, 8)
    assert train_y.shape == (1437,) and test_y.shape == (360,)
    with np.load(digits.ARCHIVE) as archive:
        assert (archive["labels"][::5] == test_y).all()
        assert np.sort(np.concatenate([train_y, test_y])).tolist() == np.sort(archive["labels"]).tolist()


def test_the_held_out_fifth_has_every_digit_often_enough():
    counts = np.bincount(digits.load().test_y, minlength=digits.CLASSES)
    assert counts.min() >= 25 and counts.sum() == 360


def test_images_are_scaled_and_levels_get_them_back():
    images = digits.load().train_x
    assert images.dtype == np.float32 and images.min() == 0.0 and images.max() == 1.0
    levels = digits.to_levels(images)
    assert levels.dtype == np.int64 and levels.shape == (1437, 64)
    assert (levels.reshape(-1, 8, 8) / 16 == images).all()


def test_loading_twice_gives_the_same():
    for one, other in zip(digits.load(), digits.load()):
        assert (one == other).all()


def test_jitter_without_reach_changes_nothing():
    images = digits.load().train_x[:5]
    assert (digits.jitter(images, np.random.default_rng(0), reach=0.0) == images).all()


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("shift", [1.0, -1.0])
def test_a_whole_pixel_of_jitter_is_a_shift(axis, shift):
    image = np.zeros((1, 8, 8), np.float32)
    image[0, 3, 3] = 1.0
    moved = digits._move(image, np.array([shift], np.float32), axis)
    assert (moved == np.roll(image, int(shift), axis)).all()


def test_jitter_stays_within_ink_and_paper():
    images = digits.load().train_x
    moved = digits.jitter(images, np.random.default_rng(0))
    assert moved.dtype == np.float32 and moved.min() >= 0.0 and moved.max() <= 1.0
    assert not (moved == images).all()


def test_the_archive_is_the_same_to_the_byte_whenever_it_is_made(tmp_path):
    with np.load(digits.ARCHIVE) as archive:
        arrays = dict(archive)
    for name in ("one.npz", "two.npz"):
        make_digits.write_archive(tmp_path / name, arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz") as archive:
        assert all((archive[name] == arrays[name]).all() for name in arrays)
