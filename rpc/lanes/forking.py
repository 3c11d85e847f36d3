"""Forks of a process with gRPC connections: the child neither crashes nor holds its parent's connections open.

gRPC's own fork handlers expect that no thread is in gRPC at the moment of the fork. An event loop always is, and then they
leave the child with locks that no thread will open: it dies. Without the handlers the child has gRPC's objects as dead memory,
which is harmless as long as nobody uses or destroys them.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import math
import os
import re
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# Read by gRPC at its import. Its errors reach users as ours, so it need not print them too, as it does while both ends close.
AT_IMPORT = {"GRPC_ENABLE_FORK_SUPPORT": "0", "GRPC_VERBOSITY": "NONE"}
# Without these experiments gRPC's poller reads the sockets itself; with them another thread hands each message over to it.
WITHOUT_EVENT_ENGINE = {"GRPC_EXPERIMENTS": "-event_engine_client,-event_engine_listener"}
LAST_VERSION = 1, 85  # seen to know them: one that does not prints an error
Address = tuple[str, int] | bytes
_addresses: set[Address] = set()  # where this process listens or has connected to


def load_grpc() -> None:
    """Import gRPC without its fork handlers, log and event engine, unless the user asked for them or has imported it."""
    wanted = AT_IMPORT | (WITHOUT_EVENT_ENGINE if grpc_version() <= LAST_VERSION else {})
    settings = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(settings)
    try:
        importlib.import_module("grpc")
    finally:
        for name in settings:
            del os.environ[name]  # programs that this process starts may want them


def grpc_version() -> tuple[float, float]:
    """Return gRPC's version, "major.minor", without importing it; infinite if it is not to be found."""
    spec = importlib.util.find_spec("grpc")
    with contextlib.suppress(OSError):
        for folder in (spec and spec.submodule_search_locations) or ():
            if found := re.search(r"(\d+)\.(\d+)", Path(folder, "_grpcio_metadata.py").read_text()):
                return int(found[1]), int(found[2])
    return math.inf, math.inf


def remember(target: str) -> None:
    """Note that a connection of this process has one end at ``target`` ("host:port")."""
    host, _, port = target.rpartition(":")
    _addresses.add((host.strip("[]"), int(port)))


def remember_name(name: bytes) -> None:
    """Note that a Unix socket of this process has one end of that name."""
    _addresses.add(name)


def keep_for_ever(things: Iterable[object]) -> None:
    """In a forked child: these, and the gRPC objects that they hold, are not destroyed even when the interpreter ends."""
    for thing in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def abandon_sockets() -> None:
    """In a forked child: leave the connections to the parent alone. Else its peers would not see them end when it dies.

    The descriptors stay, and lead nowhere: gRPC believes that it owns them.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for descriptor in map(int, os.listdir("/dev/fd")):
            if _is_ours(descriptor):
                os.dup2(null, descriptor, inheritable=False)
    finally:
        os.close(null)
    _addresses.clear()


def _is_ours(descriptor: int) -> bool:
    try:
        copy = socket.socket(fileno=os.dup(descriptor))
    except OSError:
        return False  # not a socket
    with copy:
        return bool(_addresses & {_address(copy.getsockname), _address(copy.getpeername)})


def _address(look: Callable[[], Any]) -> Address:
    with contextlib.suppress(OSError):
        match look():
            case (str(host), int(port), *_):
                return host.removeprefix("::ffff:"), port
            case bytes(name):
                return name
    return "", 0
