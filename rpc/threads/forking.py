"""Forks of a process with gRPC connections: the child must not crash, and must not hold its parent's connections open.

gRPC's own fork handlers expect that no thread is in gRPC at the moment of the fork. But the thread of an event loop always
is, and then the handlers leave the child with locks that no thread will release: it dies. Without the handlers, gRPC's objects
in the child are dead memory. That is harmless as long as the child neither uses nor destroys them.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import math
import os
import re
import socket
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ...base.errors import RpcError

# gRPC reads these when it is imported. It must not print its errors, because users get them as errors of ours.
AT_IMPORT = {"GRPC_ENABLE_FORK_SUPPORT": "0", "GRPC_VERBOSITY": "NONE"}
# Without these experiments gRPC's poller reads the sockets itself; with them another thread hands each message over to it.
WITHOUT_EVENT_ENGINE = {"GRPC_EXPERIMENTS": "-event_engine_client,-event_engine_listener"}
LAST_VERSION = 1, 85  # latest version that is known to have these experiments: one that has not prints an error
Address = tuple[str, int] | bytes
_addresses: set[Address] = set()  # addresses at which this process listens, or to which it has connected
_user = 0  # process that has used gRPC: this one, or the one from which it was forked


def load_grpc() -> None:
    """Import gRPC without its fork handlers, log and event engine, unless the user has set or imported it otherwise."""
    wanted = AT_IMPORT | (WITHOUT_EVENT_ENGINE if grpc_version() <= LAST_VERSION else {})
    settings = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(settings)
    try:
        importlib.import_module("grpc")
    finally:
        for name in settings:
            del os.environ[name]  # programs that this process starts must not inherit the setting


def grpc_version() -> tuple[float, float]:
    """Return gRPC's version as (major, minor), without importing it; infinite if it is not found."""
    spec = importlib.util.find_spec("grpc")
    with contextlib.suppress(OSError):
        for folder in (spec and spec.submodule_search_locations) or ():
            if found := re.search(r"(\d+)\.(\d+)", Path(folder, "_grpcio_metadata.py").read_text()):
                return int(found[1]), int(found[2])
    return math.inf, math.inf


def use_grpc() -> None:
    """Note that this process uses gRPC from here on.

    Raises:
        RpcError: it was forked from one that did. gRPC would wait for ever here, or end this process.
    """
    global _user
    _user = _user or os.getpid()
    if _user != os.getpid():
        raise RpcError(
            f"RPC cannot run in process {os.getpid()}: it was forked from process {_user}, where RPC had run, and gRPC does "
            f"not outlive a fork; start it with the spawn method, or fork it before rpc.init_rpc(...) is called"
        )


def remember(target: str) -> None:
    """Note that a connection of this process has one end at ``target`` ("host:port")."""
    host, _, port = target.rpartition(":")
    _addresses.add((host.strip("[]"), int(port)))


def remember_name(name: bytes) -> None:
    """Note that a Unix socket of this process has one end of that name."""
    _addresses.add(name)


def keep_for_ever(things: Iterable[object]) -> None:
    """Keep objects, and the gRPC objects that they hold, from being destroyed, even when the interpreter ends.

    For a forked child.
    """
    for thing in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def abandon_sockets() -> None:
    """Close the connections of the parent in a forked child. Else the parent's peers would not see them end when it dies.

    The descriptors stay open, but for /dev/null, because gRPC believes that it owns them.
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
        # Looked at first: a duplicate of what is no socket would stay open in the child.
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        copy = socket.socket(fileno=os.dup(descriptor))
    except OSError:
        return False  # closed meanwhile, as that of the listing is
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
