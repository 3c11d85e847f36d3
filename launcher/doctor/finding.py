"""Finding of one check."""

from dataclasses import asdict, dataclass
from enum import Enum


class Level(Enum):
    """Meaning of a finding for jobs."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        level: what it means for jobs.
        about: what was checked.
        text: what was found.
        advice: what to do; empty if nothing is to be done.
    """

    level: Level
    about: str
    text: str
    advice: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the attributes as texts, for JSON."""
        return {**asdict(self), "level": self.level.value}

    def __str__(self) -> str:
        advice = f"\n         {self.advice}" if self.advice else ""
        return f"{self.level.value:7}  {self.about}: {self.text}{advice}"


def ok(about: str, text: str) -> Finding:
    """Return a finding that nothing is to be done about."""
    return Finding(Level.OK, about, text)


def warning(about: str, text: str, advice: str) -> Finding:
    """Return a finding that some jobs will suffer from.

    Args:
        about: what was checked.
        text: what was found.
        advice: what to do.
    """
    return Finding(Level.WARNING, about, text, advice)


def problem(about: str, text: str, advice: str) -> Finding:
    """Return a finding with which jobs fail.

    Args:
        about: what was checked.
        text: what was found.
        advice: what to do.
    """
    return Finding(Level.PROBLEM, about, text, advice)
