"""Numbers that PyTorch computed, recorded in tests/golden, and the comparison of tensors with them."""

import json
from pathlib import Path

import numpy as np
import telegrad as tg

FOLDER = Path(__file__).parents[1] / "golden"
TOLERANCES = {"float64": 1e-12, "float32": 1e-6}


def recorded(name):
    """Return the content of ``tests/golden/NAME.json``."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def assert_close(found, expected, tolerance=1e-12, scale=1.0):
    """Fail unless a tensor has the expected shape and values; ``tolerance`` is relative, and times ``scale`` absolute."""
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(force=True), expected, rtol=tolerance, atol=tolerance * scale)


def largest(*arrays):
    """Return the largest finite magnitude among arrays, at least 1: the ``scale`` of sums in which elements cancel."""
    finite = [np.abs(array[np.isfinite(array)]) for array in map(np.asarray, arrays)]
    return max(float(values.max(initial=1)) for values in finite)


def weighted_sum(value):
    """Return the sum of a tensor's elements times 1, 2, 3 …, in which each has a gradient of its own."""
    return (value * tg.arange(1, value.numel() + 1, dtype=value.dtype).reshape(value.shape)).sum()


def numbers(seed, *shape, dtype="float64"):
    """Return a tensor between -0.9 and 0.9, made by the formula of the recorders of layers."""
    values = ((np.arange(int(np.prod(shape))) * 37 + seed * 11) % 29) / 16 - 0.9
    return tg.tensor(values.reshape(shape).astype(dtype))


def tensors_in(value):
    """Return the tensors in nested sequences, in order, without ``None``."""
    if value is None:
        return []
    return [value] if isinstance(value, tg.Tensor) else [tensor for item in value for tensor in tensors_in(item)]
