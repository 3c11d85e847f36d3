"""Messages between a command and a worker's socket, as lines of JSON.

A command sends a line, a ``CommandRequest``. The worker answers with a ``CommandAnswer``, then with one ``Observation`` a line.
The command may ask again on the same connection. After a request that was refused the worker closes it. Each end bounds what it
reads, and how long it waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...base.job_records import FORMAT

MOST_TIMEOUT = 60.0
SELF, OTHERS, DEBUG = "self", "others", "debug"


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """Question of a command.

    Attributes:
        ask: "self": what this worker does, without a message to any other. "others": what others do, whom this one asks.
            "debug": what the debugger of one worker says, whom this one asks if it is another.
        workers: names of the others.
        timeout: seconds that they have to answer.
        parts: names of the lists of an observation that are wanted; None for all.
        format: of these messages.
        request: JSON, for the debugger (``debugging/debugger.py``).
    """

    ask: str
    workers: list[str] = field(default_factory=list)
    timeout: float = 2.0
    parts: list[str] | None = None
    format: int = FORMAT
    request: str = ""


@dataclass(frozen=True, slots=True)
class CommandMember:
    """Worker of the job."""

    name: str
    number: int
    rank: int


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """Beginning of an answer.

    Attributes:
        error: why the request is refused; empty if it is not.
        observations: number of the lines that follow.
        members: workers of the job that have not left, as this worker knows them.
        text: JSON, from the debugger.
    """

    error: str = ""
    observations: int = 0
    members: list[CommandMember] = field(default_factory=list)
    format: int = FORMAT
    text: str = ""
