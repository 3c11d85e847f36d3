"""``telegrad debug --dap``: an IDE debugs a worker with debugpy; this command hands its bytes on, over the job's own lanes.

The IDE starts the command and talks to its standard input and output; or it connects to a port of the loopback interface, where
connections of other users are refused.
"""

from __future__ import annotations

import base64
import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...base.printable import printable
from ...base.tcp_owners import other_owner
from ..progress import report
from .answers import NoAnswerError
from .asking import names_of, question
from .jobs import LocalJob, NoJobError, choose_job, own_listener

OUTPUT_WAIT_SECONDS = 2.0
ANSWER_LIMIT = 10.0
ATTACH_SECONDS = 30.0  # for the worker to load debugpy
DETACH_SECONDS = 5.0  # for the worker to let its threads go
MOST_PIECE = 256 << 10  # bytes of a request
TERMINATED = b'{"seq": 1073741824, "type": "event", "event": "terminated"}'  # tells the IDE that the session is over


def serve_ide(names: Sequence[str], key: str | None, port: int | None, timeout: float) -> bool:
    """Let an IDE debug a worker, until it ends the session; at a port, one session after the other until Ctrl-C.

    Args:
        names: the worker; may be empty if the job has only one.
        key: the beginning of the job's id; None for the latest of this folder.
        port: port to listen at, 0 for a free one; None for standard input and output.
        timeout: seconds that a worker has to answer.

    Returns:
        Whether the last session has ended without an error.

    Raises:
        NoJobError: there is no such job or worker, or the port is taken.
    """
    job = choose_job(key)
    worker = _choose(job, names, timeout)
    if port is None:
        return _session(job, worker, _read_input, lambda data: _write_all(1, data))
    with own_listener(port) as listener:
        report(f"an IDE of yours may debug {printable(worker)} at this address, until Ctrl-C:")
        print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
        while True:
            ide = _accepted(listener)
            with ide:
                end = partial(ide.shutdown, socket.SHUT_RDWR)
                good = _session(job, worker, partial(ide.recv, MOST_PIECE), ide.sendall, end)
            with suppress(NoJobError):
                job = choose_job(job.key)
                continue
            return good


def _choose(job: LocalJob, names: Sequence[str], timeout: float) -> str:
    known = names_of(job, timeout)
    if len(names) > 1 or (not names and len(known) > 1):
        raise NoJobError(f"an IDE debugs one worker: name one of {printable(', '.join(known))}")
    if names and names[0] not in known:
        raise NoJobError(f"job {printable(job.key)} has no worker {printable(names[0])!r}; it has {', '.join(known)}")
    return names[0] if names else known[0]


def _accepted(listener: socket.socket) -> socket.socket:
    """Return the next connection of this user; those of others are closed."""
    while True:
        found, _ = listener.accept()
        owner = other_owner(found)
        if owner is not None and owner.user == os.geteuid():
            return found
        found.close()
        report("a connection of another user was refused")


@dataclass(slots=True)
class _Relay:
    """Relay of one session: numbers of the bytes so far, so that a request that got no answer can be sent again."""

    job: LocalJob
    worker: str
    session: int
    sent: int = 0
    got: int = 0
    left: bool = False  # the IDE has ended the session, or what it sent was refused
    refused: str = ""

    def exchange(self, data: bytes = b"", wait: float | None = None) -> Any:
        """Send bytes of the IDE, or wait for some for it."""
        request = {"ask": "exchange", "session": self.session, "at": self.sent, "data": base64.b64encode(data).decode()}
        request |= {"got": None if wait is None else self.got, "wait": wait or 0.0}
        try:
            return question(self.job, self.worker, request, ANSWER_LIMIT)
        except NoAnswerError:
            return question(self.job, self.worker, request, ANSWER_LIMIT)  # once more: no byte is taken twice

    def send_all(self, read: Callable[[], bytes]) -> None:
        """Send what the IDE says until it ends, and end the session then."""
        try:
            while data := read():
                self.exchange(data)
                self.sent += len(data)
        except OSError:
            pass  # it has gone
        except NoAnswerError as error:
            self.refused = str(error)
        self.left = True
        self.detach()

    def detach(self) -> None:
        """End the session, unless it has ended."""
        with suppress(NoAnswerError):
            question(self.job, self.worker, {"ask": "detach", "session": self.session}, ANSWER_LIMIT)

    def give_all(self, write: Callable[[bytes], object]) -> None:
        """Give the IDE what debugpy says, until that ends.

        Raises:
            NoAnswerError: the worker does not answer any more.
            OSError: the IDE has gone.
        """
        while True:
            try:
                told = self.exchange(wait=OUTPUT_WAIT_SECONDS)
            except NoAnswerError as error:
                if self.left and not self.refused:
                    return
                raise NoAnswerError(self.refused or str(error)) from None
            data = base64.b64decode(told["data"])
            write(data)
            self.got += len(data)
            if told["ended"] and not data:
                break
        if self.refused:
            raise NoAnswerError(self.refused)


def _session(
    job: LocalJob, worker: str, read: Callable[[], bytes], write: Callable[[bytes], object], end: Any = None
) -> bool:
    """Let an IDE debug a worker; ``end``, if there is such a function, lets ``read`` return. Return whether it went well."""
    sender = None
    try:
        relay = _Relay(job, worker, int(question(job, worker, {"ask": "attach"}, ATTACH_SECONDS)["session"]))
        sender = threading.Thread(target=relay.send_all, args=(read,), daemon=True)
        sender.start()
        relay.give_all(write)
        relay.detach()
        return True
    except OSError:
        return True  # the IDE has gone, and the session with it
    except (NoAnswerError, KeyError, TypeError, ValueError) as error:
        report(str(error))
        with suppress(OSError):
            write(b"Content-Length: %d\r\n\r\n%b" % (len(TERMINATED), TERMINATED))
        return False
    finally:
        if end is not None and sender is not None:
            with suppress(OSError):
                end()
            sender.join(DETACH_SECONDS)


def _read_input() -> bytes:
    return os.read(0, MOST_PIECE)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
