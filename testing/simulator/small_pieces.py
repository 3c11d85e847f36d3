"""``small_pieces``: buffers of a simulation travel in small pieces, so that a few bytes make many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...rpc.buffers import fetch, owned, pieces, sent_range

SMALL = {(fetch, "FETCH_PIECE_BYTES"): 400, (pieces, "RANGE_PIECE_BYTES"): 160}
SMALL |= {(module, "SMALL_BYTES"): 100 for module in (owned, sent_range)}


@contextmanager
def small_pieces() -> Iterator[None]:
    """Make the pieces of buffers small."""
    usual = {(module, name): getattr(module, name) for module, name in SMALL}
    try:
        for (module, name), value in SMALL.items():
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in usual.items():
            setattr(module, name, value)
