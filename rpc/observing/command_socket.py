"""Socket at which commands of the same user ask what this worker does, also while its pool is full or its program waits.

The I/O loop accepts, and each client gets a thread of its own for its short life: an idle worker has no thread for it. Nothing
of a request is run or unpickled.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from ...core.errors import SerializationError, TelegradError
from ...core.job_records import FORMAT
from ..threads.ioloop import acquire_loop, call_on_loop, release_loop
from .command_messages import (
    DEBUG,
    MOST_REQUEST_BYTES,
    MOST_TIMEOUT,
    OTHERS,
    SELF,
    CommandAnswer,
    CommandMember,
    CommandRequest,
)
from .json_records import decode_record, encode_record
from .observer import Observer
from .records import Observation
from .stacks import observe_threads

if TYPE_CHECKING:
    from ..agent import Agent

logger = logging.getLogger("telegrad.rpc")
MOST_CLIENTS = 8
MOST_WAITING = 16  # that connected and were not accepted yet
REQUEST_SECONDS = 2.0  # for a client to say what it wants
ANSWER_SECONDS = 10.0  # for a client to take its answer
JOINING = "it waits in init_rpc for the other workers"
CREDENTIALS = struct.Struct("3i")  # process, user, group


class CommandSocket:
    """Socket of one agent for commands.

    Args:
        agent: it answers what its worker does; it need not have joined yet.
        place: path of the socket, which is not there yet.

    Raises:
        OSError: the socket cannot be made there.

    Attributes:
        debug: answers a request to a debugger; the layer above sets it when the worker has joined.
    """

    def __init__(self, agent: Agent, place: str) -> None:
        self._agent = agent
        self.debug: Callable[[CommandRequest], str] = _not_joined
        self._clients: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            os.fchmod(self._listener.fileno(), 0o600)  # the name gets this mode from the first moment
            self._listener.bind(place)
            self._listener.listen(MOST_WAITING)
        except BaseException:
            self._listener.close()
            raise
        self._loop = acquire_loop().loop
        call_on_loop(self._loop, self._watch)

    def close(self) -> None:
        """Answer no more. Clients that are being answered are cut off."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            clients = list(self._clients)
        for client in clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        try:
            call_on_loop(self._loop, self._unwatch)
        except RuntimeError:  # the loop is closed
            self._listener.close()
        release_loop()

    def abandon(self) -> None:
        """In a forked child: close what is the parent's, so that the child does not keep the parent's clients waiting."""
        self._closed, self._lock = True, threading.Lock()
        for each in (self._listener, *self._clients):
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

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:  # it has gone, or this process has no descriptor left
            return
        with self._lock:
            admitted = not self._closed and len(self._clients) < MOST_CLIENTS and _is_same_user(client)
            if admitted:
                self._clients.add(client)
        if not admitted:
            client.close()
            return
        try:
            threading.Thread(target=self._serve, args=(client,), name="telegrad-command", daemon=True).start()
        except RuntimeError:  # no thread can be started
            self._end(client)

    # -- in the client's thread

    def _serve(self, client: socket.socket) -> None:
        try:
            for line in self._answer(client):
                client.settimeout(ANSWER_SECONDS)
                client.sendall(line + b"\n")
        except OSError:
            pass  # the client has gone, is too slow, or was cut off
        except Exception:
            logger.exception("worker %r could not answer a command", self._agent.name)
        finally:
            self._end(client)

    def _end(self, client: socket.socket) -> None:
        with self._lock:
            self._clients.discard(client)
        client.close()

    def _answer(self, client: socket.socket) -> Iterator[bytes]:
        try:
            request = decode_record(CommandRequest, _read_line(client), MOST_REQUEST_BYTES)
            self._check(request)
            if request.ask == DEBUG:
                yield encode_record(CommandAnswer(text=self.debug(request)))
                return
            found = self._observe(request)
        except (SerializationError, ValueError, RecursionError) as error:
            yield encode_record(CommandAnswer(f"the request was refused: {error}"))
            return
        except TelegradError as error:
            yield encode_record(CommandAnswer(str(error)))
            return
        yield encode_record(CommandAnswer("", len(found), self._members()))
        for each in found:
            yield encode_record(each)

    def _check(self, request: CommandRequest) -> None:
        if request.format != FORMAT:
            raise ValueError(
                f"it has format {request.format}, this worker knows {FORMAT}: use the same version of telegrad"
            )
        if request.ask not in (SELF, OTHERS, DEBUG) or not 0 < request.timeout <= MOST_TIMEOUT:
            raise ValueError(f"it asks for {request.ask!r:.40} within {request.timeout} s")

    def _observe(self, request: CommandRequest) -> list[Observation]:
        if not self._agent.sessions.known.done():
            name, rank = self._agent.name, self._agent.rank
            threads = observe_threads(self._agent, {})
            return [
                Observation(name, rank, rank, JOINING, process_id=os.getpid(), threads=threads, process_state="joining")
            ]
        if request.ask == SELF:
            return [self._agent.part(Observer).here()]
        peers = [self._agent.peers.find(name) for name in dict.fromkeys(request.workers)]  # each once
        return self._agent.part(Observer).observe(peers, request.timeout)

    def _members(self) -> list[CommandMember]:
        peers = self._agent.peers
        gone = {peer.number for peer in peers.gone()}
        infos = [(number, peers.info(number)) for number in peers.numbers() if number not in gone]
        return [CommandMember(info.name, number, info.id) for number, info in infos]


def _read_line(client: socket.socket) -> bytes:
    """Return the request's line.

    Raises:
        OSError: it did not come in time.
        ValueError: it is too long, or has no end.
    """
    deadline, data = time.monotonic() + REQUEST_SECONDS, b""
    while b"\n" not in data:
        client.settimeout(max(deadline - time.monotonic(), 0.001))
        part = client.recv(1 << 16)
        data += part
        if not part or len(data) > MOST_REQUEST_BYTES:
            raise ValueError(f"a request is one line of at most {MOST_REQUEST_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    return data.partition(b"\n")[0]


def _not_joined(request: CommandRequest) -> NoReturn:
    raise ValueError(JOINING)


def _is_same_user(client: socket.socket) -> bool:
    return peer_process(client)[1] == os.geteuid()


def peer_process(connection: socket.socket) -> tuple[int, int]:
    """Return process and user of the other end of a Unix socket's connection, as the kernel knows them."""
    process, user, _ = CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    )
    return process, user
