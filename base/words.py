"""Words that errors and notices share."""

from collections.abc import Sequence


def abridged(names: Sequence[str], most: int, rest: str = "more") -> str:
    """Return the first of some names in a row, and how many there are beside: ``"'a', 'b' and 3 more"``.

    Args:
        names: the names.
        most: how many to show.
        rest: stands after the number of the others.
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} {rest}" if len(names) > most else "")
