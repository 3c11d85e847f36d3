"""``DebugpySession``: debugpy in this process, with the bytes that it exchanges with an IDE.

debugpy can only connect to a TCP port. For that moment this process listens on the loopback interface, and accepts the
connection of its own process alone. So there is no port at which others could command the debugger.
"""

from __future__ import annotations

import os
import queue
import socket
import sysconfig
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from ...base.errors import RpcError
from ...base.tcp_owners import other_owner, own_sockets
from ...core.futures import Future, attempt, complete_once
from .dap_messages import WholeMessages, dap_message, is_disconnect

ROOT = Path(__file__).parents[2]
PROGRAMS = ("examples", "tests", "benchmarks")  # folders beside this package, or in it, that have programs
DEBUGPY_SECONDS = 20.0
LET_GO_SECONDS = 2.0  # for debugpy to let the threads go
MOST_KEPT_OUTPUT = 8 << 20  # bytes of output that the IDE has not taken: debugpy waits then
MOST_WAITING_MESSAGES = 1000  # of the IDE that debugpy has not read
DISCONNECT = {"seq": 1 << 30, "type": "request", "command": "disconnect", "arguments": {"terminateDebuggee": False}}
INSTALL = "debugpy is not installed where worker {name!r} runs: pip install debugpy"


class DebugpySession:
    """Session of one IDE with this process. Bytes are counted in both directions, so a request may be sent again.

    Args:
        name: name of the worker, for errors.

    Raises:
        RpcError: debugpy is not installed, or does not connect.
    """

    def __init__(self, name: str) -> None:
        self._socket = _connected(name)
        self._lock = threading.Lock()
        self._messages = WholeMessages()
        self._taken = 0  # bytes of the IDE that were taken
        self._output = bytearray()
        self._given = 0  # bytes of output that the IDE has, and that are kept no more
        self._ended = self._closed = False
        self._arrived: Future[None] = Future()  # completes when there is more output, or the end
        self._room = threading.Condition(self._lock)
        self._to_debugpy: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING_MESSAGES)
        self._threads = [_start(each) for each in (self._receive_all, self._send_all)]

    # -- for the IDE

    def write(self, at: int, data: bytes) -> None:
        """Take bytes of the IDE.

        Args:
            at: how many it sent before them; those that were taken before are left out.
            data: the bytes.

        Raises:
            RpcError: bytes before them are missing, they are no messages, or debugpy does not read.
        """
        with self._lock:
            if not 0 <= at <= self._taken:
                raise RpcError(f"bytes {at:,} of the IDE came when {self._taken:,} were expected")
            fresh = data[self._taken - at :]
            try:
                for each in self._messages.add(fresh):
                    self._to_debugpy.put_nowait(each)
                    if is_disconnect(each):
                        self._to_debugpy.put_nowait(None)  # debugpy would keep the connection, without an IDE
            except queue.Full:
                raise RpcError("debugpy does not read what the IDE sends") from None
            self._taken = max(self._taken, at + len(data))

    def output(self, got: int) -> tuple[bytes, bool]:
        """Return the output after the first ``got`` bytes, which the IDE has, and whether it has ended."""
        with self._lock:
            done = min(max(got - self._given, 0), len(self._output))
            del self._output[:done]
            self._given += done
            self._room.notify_all()
            return bytes(self._output), self._ended

    def more_output(self) -> Future[None] | None:
        """Return a future of more output, or the end; None if there is some, or it has ended."""
        with self._lock:
            return None if self._output or self._ended else self._arrived

    def hold(self, frame: FrameType) -> None:
        """Hold this thread at the next line of a frame, until the IDE lets it go; not without an IDE."""
        import pydevd

        if self._ended:
            return
        pydevd.settrace(suspend=True, trace_only_current_thread=True, stop_at_frame=frame, notify_stdin=False)

    def close(self) -> None:
        """End the session: debugpy forgets its breakpoints and lets all threads go."""
        with suppress(queue.Full):
            self._to_debugpy.put_nowait(dap_message(DISCONNECT))
            self._to_debugpy.put_nowait(None)
        with self._room:
            self._closed = True
            self._room.notify_all()
            self._room.wait_for(lambda: self._ended, LET_GO_SECONDS)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        """Wait for the threads of a closed session."""
        for each in self._threads:
            each.join(LET_GO_SECONDS)
        self._socket.close()

    # -- in threads

    def _send_all(self) -> None:
        with suppress(OSError):
            while (data := self._to_debugpy.get()) is not None:
                self._socket.sendall(data)
            self._socket.shutdown(socket.SHUT_WR)

    def _receive_all(self) -> None:
        messages = WholeMessages()  # the command may say something of its own after each
        with suppress(OSError, RpcError):
            while data := self._socket.recv(1 << 16):
                if not (whole := b"".join(messages.add(data))):
                    continue
                with self._room:
                    self._output += whole
                    arrived, self._arrived = self._arrived, Future()
                complete_once(arrived, None)
                with self._room:
                    self._room.wait_for(lambda: len(self._output) < MOST_KEPT_OUTPUT or self._closed)
        with self._room:
            self._ended = True
            arrived = self._arrived
            self._room.notify_all()
        with suppress(queue.Full):  # else the writer finds the connection closed
            self._to_debugpy.put_nowait(None)
        complete_once(arrived, None)


def _connected(name: str) -> socket.socket:
    """Return the end of a connection whose other end is debugpy's."""
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # else it warns of frozen modules
    try:
        from debugpy.server import api  # noqa: F401 (it finds pydevd)
    except ImportError:
        raise RpcError(INSTALL.format(name=name)) from None
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        listener.settimeout(DEBUGPY_SECONDS)
        failed: list[BaseException] = []
        thread = _start(lambda: _settrace(listener.getsockname()[1], failed, listener))
        try:
            found = _accepted(listener)
        except OSError as error:
            raise RpcError(f"debugpy has not connected: {failed[0] if failed else error}") from None
    thread.join(DEBUGPY_SECONDS)
    found.settimeout(None)
    return found


def _accepted(listener: socket.socket) -> socket.socket:
    """Return the connection of this process; those of others are closed."""
    while True:
        found, _ = listener.accept()
        owner = other_owner(found)
        if owner is not None and owner.socket in own_sockets():
            return found
        found.close()


def _settrace(port: int, failed: list[BaseException], listener: socket.socket) -> None:
    import pydevd

    _, error = attempt(
        lambda: pydevd.settrace(
            host="127.0.0.1",
            port=port,
            suspend=False,
            wait_for_ready_to_run=False,
            notify_stdin=False,
            dont_trace_start_patterns=_passed_over(),
        )
    )
    if error is not None:
        failed.append(error)
        listener.close()


def _passed_over() -> tuple[str, ...]:
    """Return where files begin that are never held: those of the threads that answer the IDE and other workers."""
    import debugpy

    libraries = [sysconfig.get_path("stdlib"), str(Path(debugpy.__file__).parent)]
    with suppress(ImportError):
        import grpc

        libraries.append(str(Path(grpc.__file__).parent))
    own = [f"{each.parent}/" for each in ROOT.glob("*/__init__.py") if each.parent.name not in PROGRAMS]
    return (*own, *libraries)


def _start(work: Any) -> threading.Thread:
    thread: Any = threading.Thread(target=work, name="telegrad-debugpy", daemon=True)
    thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True  # as debugpy marks its own
    thread.start()
    return thread
