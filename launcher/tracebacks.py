"""Filter that drops tracebacks from the lines that are shown: when a job ends anyway, they are in the logs only."""

import re

BEGIN = re.compile(r"^\s*(\+ Exception Group )?Traceback \(most recent call last\):")
AROUND = re.compile(
    r"^(During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:"
    r"|Exception ignored in: .*|Task exception was never retrieved|future: <.*)$"
)


class TracebackFilter:
    """Filter for one worker's lines: drops tracebacks, with the line of the exception and what Python writes around them."""

    def __init__(self) -> None:
        self._inside = False
        self._group = False  # all lines of an exception group's traceback are indented, also the last one
        self._after = False  # blank lines that follow belong to it

    def keep(self, lines: list[str]) -> list[str]:
        """Return the lines that are to be shown."""
        return [line for line in lines if not self._drops(line)]

    def _drops(self, line: str) -> bool:
        if BEGIN.match(line):
            self._inside, self._group, self._after = True, line.startswith(" "), True
            return True
        if self._inside and line.startswith((" ", "\t")):
            return True
        exception = self._inside and not self._group
        self._inside = False
        if exception or AROUND.match(line):
            self._after = True
            return True
        self._after = self._after and not line.strip()
        return self._after
