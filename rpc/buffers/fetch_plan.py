"""``FetchPlan``: which worker gives which piece of a buffer to which reader. Pure; its owner keeps one.

Each piece leaves the owner once, as long as all goes well: a reader that has it gives it to the others. The owner sends pieces
that none has and none is getting; the others come from readers, the rarest first.
"""

from __future__ import annotations

from itertools import islice
from typing import TypeAlias

READER_PIECES = 4  # on their way to one reader
OWNER_PIECES = 8  # on their way from the owner
LENDER_PIECES = 4  # on their way from one reader
WINDOW_PIECES = 256  # of those that a reader needs, the first; only they are looked at

Holder: TypeAlias = tuple[int, int]
"""Number of a worker, and that of its copy there; the owner's is ``ORIGINAL``."""
ORIGINAL = -1


class FetchReader:
    """Pieces that one reader needs and gets.

    Args:
        count: pieces of the buffer.
    """

    def __init__(self, count: int) -> None:
        self.needs = dict.fromkeys(range(count))
        self.gets: dict[int, Holder] = {}  # the sources of pieces on their way


class FetchPlan:
    """Sources of the pieces of one buffer, for all that fetch it.

    Args:
        count: pieces of the buffer.
        owner: the number of its owner.
    """

    def __init__(self, count: int, owner: int) -> None:
        self._count = count
        self._owner = (owner, ORIGINAL)
        self._readers: dict[Holder, FetchReader] = {}
        self._lenders: list[dict[Holder, None]] = [{} for _ in range(count)]  # of each piece, the next to be used first
        self._coming = [0] * count  # readers to which the piece is on its way
        self._sends: dict[Holder, int] = {}  # pieces on their way from a source

    # -- what happens

    def begin(self, reader: Holder) -> None:
        """Note a new reader."""
        self._readers[reader] = FetchReader(self._count)

    def keep_only(self, worker: int, live: list[int]) -> None:
        """Note that a worker has no copies any more but those of the numbers ``live``, and later ones."""
        gone = set(range(max(live))).difference(live)
        for other in [other for other in self._readers if other[0] == worker and other[1] in gone]:
            self.leave(other)

    def arrived(self, reader: Holder, piece: int) -> None:
        """Note that a reader has a piece, and lends it."""
        if (state := self._ended(reader, piece)) is not None:
            state.needs.pop(piece, None)
            self._lenders[piece][reader] = None

    def whole(self, reader: Holder) -> None:
        """Note that a reader has all pieces: the owner may not have heard of each."""
        if (state := self._readers.get(reader)) is not None:
            for piece in (*state.gets, *state.needs):
                self.arrived(reader, piece)

    def failed(self, reader: Holder, piece: int) -> None:
        """Note that a reader did not get a piece: its source lends nothing that it has by now."""
        state = self._readers.get(reader)
        source = state.gets.get(piece) if state else None
        self._ended(reader, piece)
        if source is not None:
            self._lends_nothing(source)

    def only(self, reader: Holder, pieces: list[int]) -> None:
        """Note that no pieces are on their way to a reader but these: an answer of the owner was lost."""
        state = self._readers.get(reader)
        for piece in [piece for piece in state.gets if piece not in pieces] if state else ():
            self._ended(reader, piece)

    def leave(self, reader: Holder) -> None:
        """Note that a reader has ended, and lends nothing."""
        state = self._readers.get(reader)
        for piece in list(state.gets) if state else ():
            self._ended(reader, piece)
        self._readers.pop(reader, None)
        self._lends_nothing(reader)

    def lost(self, worker: int) -> None:
        """Note that a worker is lost."""
        for reader in [reader for reader in self._readers if reader[0] == worker]:
            self.leave(reader)

    def _ended(self, reader: Holder, piece: int) -> FetchReader | None:
        """Note that a piece is not on its way to a reader any more."""
        state = self._readers.get(reader)
        if state is not None and (source := state.gets.pop(piece, None)) is not None:
            state.needs[piece] = None
            self._coming[piece] -= 1
            self._sends[source] -= 1
            if not self._sends[source]:
                del self._sends[source]
        return state

    def _lends_nothing(self, source: Holder) -> None:
        for lenders in self._lenders:
            lenders.pop(source, None)

    # -- what comes next

    def knows(self, reader: Holder) -> bool:
        """Return whether a reader has begun, and has not left."""
        return reader in self._readers

    def complete(self, reader: Holder) -> bool:
        """Return whether a reader, which has begun, needs nothing more."""
        return not self.left(reader)

    def left(self, reader: Holder) -> int:
        """Return how many pieces a reader, which has begun, still needs or gets."""
        state = self._readers[reader]
        return len(state.needs) + len(state.gets)

    def next(self, reader: Holder, starved: bool = False) -> list[tuple[int, Holder]]:
        """Return the pieces that a reader is to ask for now, with their sources: none if it has to wait.

        Args:
            reader: it has begun.
            starved: it has waited for so long that the owner sends it a piece, if no reader can.
        """
        state, found = self._readers[reader], []
        window = list(islice(state.needs, WINDOW_PIECES))
        while len(state.gets) < READER_PIECES:
            chosen = self._fresh(reader[0], window) or self._lent(reader[0], window)
            if chosen is None and starved and window and not state.gets:
                chosen = window[0], self._owner
            if chosen is None:
                break
            piece, source = chosen
            window.remove(piece)
            del state.needs[piece]
            state.gets[piece] = source
            self._coming[piece] += 1
            self._sends[source] = self._sends.get(source, 0) + 1
            found.append(chosen)
        return found

    def _fresh(self, worker: int, window: list[int]) -> tuple[int, Holder] | None:
        """Return a piece that no reader of another worker has, and none gets."""
        if self._sends.get(self._owner, 0) >= OWNER_PIECES:
            return None
        for piece in window:
            if not self._coming[piece] and all(source[0] == worker for source in self._lenders[piece]):
                return piece, self._owner
        return None

    def _lent(self, worker: int, window: list[int]) -> tuple[int, Holder] | None:
        """Return the piece that the fewest readers have, of those that one can send to a worker now."""
        for piece in sorted(window, key=lambda piece: len(self._lenders[piece])):
            lenders = self._lenders[piece]
            for source in islice(lenders, LENDER_PIECES):
                if source[0] != worker and self._sends.get(source, 0) < LENDER_PIECES:
                    del lenders[source]
                    lenders[source] = None  # the others come first now
                    return piece, source
        return None
