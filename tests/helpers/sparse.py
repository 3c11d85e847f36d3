"""Sparse tensors that several files of tests use."""

import numpy as np
import telegrad as tg
from telegrad.nn import functional as F


def example(requires_grad=False, dtype="float32"):
    """Three elements, two of one place, in shape (2, 3)."""
    return tg.sparse_coo_tensor(
        [[0, 1, 1, 1], [2, 2, 0, 2]], np.array([3, 4, 5, 6], dtype), (2, 3), requires_grad=requires_grad
    )


DENSE = [[0, 0, 3], [5, 0, 10]]


def random(shape, sparse_dim, seed=0, count=6, dtype="float64"):
    """Return a sparse tensor of ``count`` elements, by chance."""
    generator = np.random.default_rng(seed)
    places = [generator.integers(0, max(length, 1), count) for length in shape[:sparse_dim]]
    values = generator.standard_normal((count, *shape[sparse_dim:])).astype(dtype)
    return tg.sparse_coo_tensor(np.array(places, np.int64).reshape(sparse_dim, count), values, shape)


def looked_up(table, rows, sparse=True):
    """Return rows of a table, whose gradient is sparse."""
    return F.embedding(tg.tensor(rows), table, sparse=sparse)


def small_table():
    """Return a table of four rows that requires grad."""
    return tg.ones(4, 2, dtype="float64", requires_grad=True)
