"""Owners of the other ends of this machine's TCP connections, as the kernel's table tells them."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import NamedTuple

TABLE = "/proc/net/tcp"


class TcpOwner(NamedTuple):
    """Owner of an end of a connection: its user, and the number of its socket."""

    user: int
    socket: int


def other_owner(connection: socket.socket) -> TcpOwner | None:
    """Return the owner of the other end of a connection within this machine, over IPv4; None if the table does not have it.

    Args:
        connection: one end.
    """
    here, there = (_written(*address) for address in (connection.getsockname(), connection.getpeername()))
    with suppress(OSError), open(TABLE) as table:
        for line in table:
            words = line.split()
            if words[1:3] == [there, here]:
                return TcpOwner(int(words[7]), int(words[9]))
    return None


def own_sockets() -> set[int]:
    """Return the numbers of the sockets that this process has."""
    found = set()
    for each in os.listdir("/proc/self/fd"):
        with suppress(OSError, ValueError):
            kind, _, number = os.readlink(f"/proc/self/fd/{each}").partition(":")
            if kind == "socket":
                found.add(int(number.strip("[]")))
    return found


def _written(host: str, port: int) -> str:
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"
