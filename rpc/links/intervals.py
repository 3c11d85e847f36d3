"""Set of numbers that is kept as intervals, so that a set with few gaps takes a few bytes, however many numbers it has.

Two kinds of sets are kept so: the numbers of the messages that were received from a peer, and sets of workers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Set


class IntervalSet(Set[int]):
    """Set of non-negative integers, kept as disjoint intervals that do not touch.

    Finding takes O(log n) for n intervals. Numbers arrive almost in order, so gaps close, and usually there is one
    interval.

    Args:
        numbers: the numbers that the set begins with; a ``range`` takes as long as one number.
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # exclusive
        if isinstance(numbers, range) and numbers and numbers.step == 1:
            self.add_range(numbers.start, numbers.stop)
        else:
            for number in numbers:
                self.add(number)

    def add(self, number: int) -> bool:
        """Add ``number``; False if it was there already. Raises ``ValueError`` for a negative one."""
        if number < 0:
            raise ValueError(f"an interval set holds counters: you gave {number}, give a number that is not negative")
        at = bisect_right(self._starts, number)
        if at and number < self._ends[at - 1]:
            return False
        joins_left = at > 0 and self._ends[at - 1] == number
        joins_right = at < len(self._starts) and self._starts[at] == number + 1
        self._insert(at, number, joins_left, joins_right)
        return True

    def _insert(self, at: int, number: int, joins_left: bool, joins_right: bool) -> None:
        if joins_left and joins_right:
            self._ends[at - 1] = self._ends.pop(at)
            del self._starts[at]
        elif joins_left:
            self._ends[at - 1] = number + 1
        elif joins_right:
            self._starts[at] = number
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number + 1)

    def add_range(self, first: int, end: int) -> None:
        """Add every number from ``first`` up to, and without, ``end``."""
        if not 0 <= first < end:
            raise ValueError(f"a range of counters must be 0 <= first < end: you gave {first} and {end}")
        low = bisect_left(self._ends, first)  # the first interval that touches the range ...
        high = bisect_right(self._starts, end)  # ... and one past the last
        if low < high:
            first, end = min(first, self._starts[low]), max(end, self._ends[high - 1])
        self._starts[low:high], self._ends[low:high] = [first], [end]

    def discard(self, number: int) -> None:
        """Remove ``number``, if it is in the set."""
        at = bisect_right(self._starts, number) - 1
        if at < 0 or number >= self._ends[at]:
            return
        start, end = self._starts[at], self._ends[at]
        left = [each for each in ((start, number), (number + 1, end)) if each[0] < each[1]]
        self._starts[at : at + 1] = [first for first, _ in left]
        self._ends[at : at + 1] = [last for _, last in left]

    def start_of(self, number: int) -> int:
        """Return the first number of the interval that holds ``number``, which must be in the set."""
        return self._starts[bisect_right(self._starts, number) - 1]

    def below(self, number: int) -> int:
        """Return how many numbers of the set are lower than ``number``; takes O(n) for n intervals."""
        return sum(min(end, number) - first for first, end in self.intervals() if first < number)

    def covers(self, other: "IntervalSet") -> bool:
        """Return whether this set has all numbers of another one; takes O(n log n) for n intervals."""
        return all(
            first in self and end <= self._ends[bisect_right(self._starts, first) - 1]
            for first, end in other.intervals()
        )

    def copy(self) -> "IntervalSet":
        """Return a new set of the same numbers."""
        same = IntervalSet()
        same._starts, same._ends = self._starts.copy(), self._ends.copy()
        return same

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        at = bisect_right(self._starts, number)
        return at > 0 and number < self._ends[at - 1]

    def __len__(self) -> int:
        """Return how many integers are in the set, not how many intervals."""
        return sum(self._ends) - sum(self._starts)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the integers, in rising order."""
        return (number for first, end in self.intervals() for number in range(first, end))

    def intervals(self) -> list[tuple[int, int]]:
        """Return the intervals in rising order, each as (first, one past the last)."""
        return list(zip(self._starts, self._ends))

    def __repr__(self) -> str:
        return f"IntervalSet({', '.join(f'{first}..{end - 1}' for first, end in self.intervals())})"
