"""Pieces of a batch: shares that cover it, and sums that have the same bits for any number of workers."""

import numpy as np
import pytest
from telegrad.collective.elastic.pieces import add_up, blocks, share


@pytest.mark.parametrize("count", [0, 1, 5, 8, 13])
@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
def test_shares_cover_all_once(count, parts):
    found = [share(count, part, parts) for part in range(parts)]
    assert [number for each in found for number in each] == list(range(count))
    assert max(map(len, found)) - min(map(len, found)) <= 1


@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 8, 12])
def test_sums_of_pieces_have_the_same_bits_for_any_workers(pieces):
    random = np.random.default_rng(pieces)
    rows = {(piece, piece + 1): [random.normal(size=9), random.normal(size=2)] for piece in range(pieces)}
    expected = add_up((0, pieces), rows)
    for workers in range(1, pieces + 3):
        known = {}
        for worker in range(workers):
            found = blocks(share(pieces, worker, workers), pieces)
            assert len(found) <= 2 * pieces.bit_length()
            known.update({block: add_up(block, rows) for block in found})
        total = add_up((0, pieces), known)
        for one, other in zip(total, expected, strict=True):
            np.testing.assert_array_equal(one, other)
