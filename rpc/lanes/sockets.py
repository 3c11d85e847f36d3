"""Stream sockets of the gRPC lane: only this module makes, checks and names them.

A Unix socket has a name in the abstract namespace. So no file is left behind, and other hosts, and containers with a network of
their own, cannot reach it. The kernel says which user is at its other end.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
from collections.abc import Sequence

from ..threads.forking import remember, remember_name
from .addresses import is_loopback
from .stream_socket import PlainSocket

KINDS = ("unix", "tcp")  # the preferred first
BACKLOG = 1024
PREFIX = "telegrad-"
CREDENTIALS = struct.Struct("3i")  # process, user, group


def listen(kind: str, host: str) -> tuple[socket.socket, str]:
    """Return a socket that listens, and its address for others.

    Args:
        kind: one of ``KINDS``.
        host: the address to listen at, for a TCP socket.

    Raises:
        OSError: the system gives no socket.
    """
    if kind == "unix":
        return _listen_unix()
    listening = socket.create_server((host.strip("[]"), 0), family=_family(host), backlog=BACKLOG)
    listening.setblocking(False)
    port = listening.getsockname()[1]
    remember(f"{host}:{port}")
    return listening, f"tcp://{host}:{port}"


def _listen_unix() -> tuple[socket.socket, str]:
    listening = socket.socket(socket.AF_UNIX)
    try:
        name = PREFIX + secrets.token_hex(16)
        listening.bind(f"\0{name}")
        listening.listen(BACKLOG)
    except Exception:
        listening.close()
        raise
    listening.setblocking(False)
    remember_name(f"\0{name}".encode())
    return listening, f"unix://@{name}"


def endpoint(address: str) -> tuple[PlainSocket, str | tuple[str, int]]:
    """Return a new socket, and the target to connect it to, for an address that ``listen`` returned at the peer.

    Raises:
        OSError: the system gives no socket.
        ValueError: the address is no such address.
    """
    kind, _, place = address.partition("://")
    if kind == "unix" and place.startswith(f"@{PREFIX}"):
        name = "\0" + place[1:]
        remember_name(name.encode())
        made, target = PlainSocket(socket.AF_UNIX), name
        made.setblocking(False)
        return made, target
    host, _, port = place.rpartition(":")
    if kind != "tcp" or not host:
        raise ValueError(f"{address!r} is no address of a socket")
    remember(place)
    made = PlainSocket(_family(host))
    made.setblocking(False)
    return made, (host.strip("[]"), int(port))


def prepare(connected: socket.socket) -> None:
    """Set the options of a connected socket, and check which user is at the other end of a Unix socket.

    Raises:
        PermissionError: a process of another user is at the other end.
    """
    connected.setblocking(False)
    if connected.family != socket.AF_UNIX:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return
    packed = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    process, user, _ = CREDENTIALS.unpack(packed)
    if user != os.geteuid():
        raise PermissionError(f"process {process} of user {user} is at the other end of a Unix socket")


def worth_offering(kinds: Sequence[str], host: str) -> list[str]:
    """Return the kinds to listen on.

    Args:
        kinds: the kinds that this worker may use.
        host: where gRPC listens. A process that reaches a loopback address also reaches a Unix socket.
    """
    no_tcp = "unix" in kinds and is_loopback(host.strip("[]"))
    return [kind for kind in kinds if not (no_tcp and kind == "tcp")]


def choose(kinds: Sequence[str], addresses: Sequence[str], target: str) -> list[str]:
    """Return the addresses of a peer's sockets to try, in this order.

    Args:
        kinds: the kinds that this worker may use, the preferred first.
        addresses: the addresses in the peer's record.
        target: "host:port" that was dialed to reach the peer's gRPC server. Its TCP socket has the same host.
    """
    host = target.rpartition(":")[0]
    found = [each for kind in kinds for each in addresses if each.startswith(f"{kind}://")]
    return [f"tcp://{host}:{each.rpartition(':')[2]}" if each.startswith("tcp") else each for each in found]


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
