"""``Place``: the place of a loader in its passes, for a state that a later loader continues from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Any

from .errors import DataLoaderError


class Place:
    """Place in the latest pass over a loader: the numbers of the batches that its loop was given.

    Args:
        epoch: number of the pass, from 0 on.
        began: state of the sampler and the generator when the pass began.

    Attributes:
        ended: whether the loop has asked for more batches than there were.
    """

    def __init__(self, epoch: int = -1, began: Any = None, ended: bool = True) -> None:
        self.epoch = epoch
        self.began = began
        self.ended = ended
        self._given = 0  # the batches below this number
        self._beyond: set[int] = set()  # those above; only where batches come out of order

    def give(self, number: int, batch: Any) -> Any:
        """Note that the loop gets a batch, and return the batch."""
        self._beyond.add(number)
        while self._given in self._beyond:
            self._beyond.remove(self._given)
            self._given += 1
        return batch

    def remaining(self, indices: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """Return the numbers and indices of the batches that the loop has not got; the first is drawn at once.

        Args:
            indices: those of all batches of the pass.
        """
        left = ((number, index) for number, index in zip(count(), indices) if not self._has(number))
        first = next(left, None)
        return chain([] if first is None else [first], left)

    def _has(self, number: int) -> bool:
        return number < self._given or number in self._beyond

    @property
    def given(self) -> int:
        """Return how many batches the loop was given."""
        return self._given + len(self._beyond)

    def restart(self) -> None:
        """Forget the batches that the loop was given: they will be made and dropped."""
        self._given, self._beyond = 0, set()

    def state_dict(self) -> dict[str, Any]:
        """Return the state, of numbers and of what ``began`` holds."""
        given = {"given": self._given, "beyond": sorted(self._beyond)}
        return {"epoch": self.epoch, "ended": self.ended, "began": self.began, **given}

    @staticmethod
    def of(state: dict[str, Any]) -> Place:
        """Return the place that a ``state_dict`` tells of.

        Raises:
            DataLoaderError: it is not the state of a loader.
        """
        try:
            place = Place(int(state["epoch"]), state["began"], bool(state["ended"]))
            place._given, place._beyond = int(state["given"]), set(map(int, state["beyond"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataLoaderError(f"this is not the state_dict() of a DataLoader: {error!r}") from error
        return place
