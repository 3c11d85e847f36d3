"""Socket at which commands of the same user ask what this worker does, also while its pool is full or its program waits.

The I/O loop accepts and reads, and answers itself what takes little time. For the rest a request gets a thread for its short
life: an idle worker has no thread for it. A client may ask again and again; if there are too many, the one that has been silent
for longest is cut off. Nothing of a request is run or unpickled.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ...base.processes import peer_process
from ..threads.ioloop import acquire_loop, call_on_loop, release_loop

if TYPE_CHECKING:
    from ..agent import Agent
    from .command_answers import CommandAnswers
    from .command_client import CommandClient
    from .command_messages import CommandRequest

logger = logging.getLogger("telegrad.rpc")
MOST_CLIENTS = 8
MOST_WAITING = 16  # that connected and were not accepted yet
ANSWER_SECONDS = 10.0  # for a client to take its answer


class CommandSocket:
    """Socket of one agent for commands.

    Args:
        agent: it answers what its worker does; it need not have joined yet.
        place: path of the socket, which is not there yet.

    Raises:
        OSError: the socket cannot be made there.

    Attributes:
        debug: answers a request to a debugger; the layer above sets it when the worker has joined, until then it is None.
    """

    def __init__(self, agent: Agent, place: str) -> None:
        self._agent = agent
        self.debug: Callable[[CommandRequest], str] | None = None
        self._clients: set[CommandClient] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        with ExitStack() as undo:
            undo.callback(self._listener.close)
            os.fchmod(self._listener.fileno(), 0o600)  # the name gets this mode from the first moment
            self._listener.bind(place)
            self._listener.listen(MOST_WAITING)
            undo.pop_all()
        self._loop = acquire_loop().loop
        call_on_loop(self._loop, self._watch)

    @cached_property
    def _answers(self) -> CommandAnswers:
        from .command_answers import CommandAnswers  # here: most workers are never asked

        return CommandAnswers(self._agent, lambda: self.debug)

    def close(self) -> None:
        """Answer no more. Clients that are being answered are cut off."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            clients = list(self._clients)
        for client in clients:
            with suppress(OSError):
                client.connection.shutdown(socket.SHUT_RDWR)
        try:
            call_on_loop(self._loop, self._unwatch)
        except RuntimeError:  # the loop is closed
            self._listener.close()
        release_loop()

    def abandon(self) -> None:
        """In a forked child: close what is the parent's, so that the child does not keep the parent's clients waiting."""
        self._closed, self._lock = True, threading.Lock()
        for each in (self._listener, *(client.connection for client in self._clients)):
            with suppress(OSError):
                each.close()
        self._clients.clear()

    # -- on the I/O loop

    def _watch(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _unwatch(self) -> None:
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()
        for client in [each for each in self._clients if not each.busy]:
            self._end(client)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has gone, or this process has no descriptor left
            return
        if self._closed or not _is_same_user(connection) or not self._make_room():
            connection.close()
            return
        connection.setblocking(False)
        client = self._answers.new_client(connection)
        with self._lock:
            self._clients.add(client)
        self._loop.add_reader(connection.fileno(), self._read, client)

    def _make_room(self) -> bool:
        """Return whether there is room for a client; if need be, cut off the one that has been silent for longest."""
        if len(self._clients) < MOST_CLIENTS:
            return True
        silent = [each for each in self._clients if not each.busy]
        if silent:
            self._end(min(silent, key=lambda each: each.heard))
        return bool(silent)

    def _read(self, client: CommandClient) -> None:
        try:
            if client.receive():
                self._serve_next(client)
            else:
                self._end(client)
        except ValueError as error:
            self._refuse(client, error)
        except OSError:
            self._end(client)

    def _serve_next(self, client: CommandClient) -> None:
        """Answer the client's next request, if it has come: here, if that takes little time, else in a thread."""
        while (line := client.next_line()) is not None:
            answer = self._answers.quick(line)
            sent = client.connection.send(answer) if answer else 0
            if not answer or sent < len(answer):
                self._begin_thread(client, line, answer[sent:])
                return

    def _refuse(self, client: CommandClient, error: ValueError) -> None:
        with suppress(OSError):
            client.connection.send(self._answers.refusal(error))
        self._end(client)

    def _begin_thread(self, client: CommandClient, line: bytes, rest: bytes) -> None:
        self._loop.remove_reader(client.connection.fileno())
        client.busy = True
        serve = partial(self._serve, client, line, rest)
        try:
            threading.Thread(target=serve, name="telegrad-command", daemon=True).start()
        except RuntimeError:  # no thread can be started
            self._end(client)

    def _go_on(self, client: CommandClient) -> None:
        """Read from a client that was answered in a thread."""
        client.busy = False
        if self._closed:
            self._end(client)
            return
        self._loop.add_reader(client.connection.fileno(), self._read, client)
        try:
            self._serve_next(client)
        except ValueError as error:
            self._refuse(client, error)
        except OSError:
            self._end(client)

    def _end(self, client: CommandClient) -> None:
        # On the loop, or in the client's thread, which the loop does not watch.
        with self._lock:
            if client not in self._clients:
                return
            self._clients.discard(client)
        if not client.busy:
            self._loop.remove_reader(client.connection.fileno())
        client.connection.close()

    # -- in the client's thread

    def _serve(self, client: CommandClient, line: bytes, rest: bytes) -> None:
        """Send the rest of a quick answer, or answer a request."""
        try:
            goes_on = True
            client.connection.settimeout(ANSWER_SECONDS)
            if rest:
                client.connection.sendall(rest)
            else:
                goes_on = self._answer(client.connection, line)
            client.connection.setblocking(False)
            if goes_on:
                call_on_loop(self._loop, self._go_on, client)
                return
        except (OSError, RuntimeError):
            pass  # the client has gone, is too slow, or was cut off; or the loop is closed
        except Exception:
            logger.exception("worker %r could not answer a command", self._agent.name)
        self._end(client)

    def _answer(self, connection: socket.socket, line: bytes) -> bool:
        """Answer a request; return False if it is refused."""
        accepted, lines = self._answers.answer(line)
        for each in lines:
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(each)
        return accepted


def _is_same_user(client: socket.socket) -> bool:
    return peer_process(client)[1] == os.geteuid()
