"""``printable``: a text that a program chose, made harmless for one line of a terminal."""

MOST_PRINTED = 400  # characters of a text


def printable(text: str, most: int = MOST_PRINTED) -> str:
    """Return a text for one line of a terminal: characters that are not printable are escaped, and a very long one is cut.

    Args:
        text: anything, such as names that a program has chosen.
        most: characters to keep.
    """
    safe = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[: most + 1])
    return f"{safe[:most]}…" if len(safe) > most else safe
