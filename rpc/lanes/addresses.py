"""Addresses "host:port" in one spelling, because both ends of a handshake compare them as text; and the check of exposure.

Without TLS a worker listens on, and dials, the loopback interface only, unless its user has written ``insecure=True``.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress

from ...base.errors import RendezvousError

logger = logging.getLogger("telegrad.rpc")
LOOPBACK = "127.0.0.1"
EVERY_ADDRESS = ("0.0.0.0", "::")


def usual_address(address: str) -> str:
    """Return "host:port" in its usual spelling: ``localhost:4711`` is ``127.0.0.1:4711``, ``::1:4711`` is ``[::1]:4711``.

    Names of hosts stay names, in lower case.

    Raises:
        RendezvousError: it has no host or no port.
    """
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise RendezvousError(
            f"{port!r} is not a port; MASTER_PORT (or init_method=) must have a number from 1 to 65535"
        )
    return join_address(host, int(port))


def join_address(host: str, port: int, wildcard: bool = False) -> str:
    """Return "host:port" for a host, in its usual spelling.

    Args:
        host: name or address.
        port: number of the port; 0 for a free one.
        wildcard: it may stand for every address of this machine.

    Raises:
        RendezvousError: it is no host.
    """
    host = host.removeprefix("[").removesuffix("]").lower()
    if host in EVERY_ADDRESS and not wildcard:
        logger.warning(
            "%s means every address of this machine, which other workers cannot dial; %s is used", host, LOOPBACK
        )
        host = LOOPBACK
    if not host or any(character in host for character in "/@[]% "):
        raise RendezvousError(
            f"{host!r} is neither a name nor an address of a host; use one that all workers can reach"
        )
    found = _ip(host)
    return f"{host}:{port}" if found is None else f"[{found}]:{port}" if found.version == 6 else f"{found}:{port}"


def port_of(address: str) -> int:
    """Return the port of "host:port"; a scheme may stand before it."""
    return int(address.rpartition(":")[2])


def host_of(address: str) -> str:
    """Return the host of "host:port", without the brackets of an IPv6 address."""
    return address.rpartition(":")[0].removeprefix("[").removesuffix("]")


def first_host(addresses: Sequence[str]) -> str:
    """Return the host of a worker's first address; empty if that names none."""
    return host_of(addresses[0].partition("://")[2]) if addresses else ""


def is_loopback(host: str) -> bool:
    """Return whether a host is an address of the loopback interface. No name but "localhost" is one: names are not resolved."""
    found = _ip(host)
    return found is not None and found.is_loopback


def check_exposure(argument: str, host: str, secured: bool) -> None:
    """Check that a worker may listen at, or dial, this host.

    Args:
        argument: names what gave the host, in the error.
        host: name or address.
        secured: the worker has TLS, or its user has written ``insecure=True``.

    Raises:
        RendezvousError: it is not on the loopback interface.
    """
    if not secured and not is_loopback(host):
        raise RendezvousError(
            f"{argument} is {host!r}: for a job on one machine write 127.0.0.1 or localhost. A job on several machines needs "
            f"TLS, or anybody on the way could read and change what workers say: start it with `telegrad run --nnodes`, give "
            f"GrpcRpcBackendOptions(tls=TlsFiles(...)), or write insecure=True if you trust everybody on that network"
        )


def host_towards(address: str, argument: str = "the host") -> str:
    """Return the address of this machine from which it reaches "host:port".

    Args:
        address: of the other end.
        argument: names what gave it, in errors.

    Raises:
        RendezvousError: the host is not known, or no network leads there; all addresses tried are listed.
    """
    host, _, port = address.rpartition(":")
    tried = []
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
    except OSError as error:
        raise RendezvousError(
            f"{argument} {host!r} has no address ({error.strerror}); check its name, or /etc/hosts"
        ) from None
    for family, _, _, _, target in found:
        tried.append(str(target[0]))
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(target)  # sends nothing; the system looks up the route
            return str(probe.getsockname()[0])
    raise RendezvousError(
        f"no network of this machine leads to {argument} {host!r} ({', '.join(tried)}); check its interfaces and routes"
    )


def can_listen(address: str) -> bool:
    """Return whether this process could listen at "host:port", which is one of this machine, and no socket listens there."""
    try:
        family, _, _, _, target = socket.getaddrinfo(host_of(address), port_of(address), type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # one that is bound and does not listen is no hindrance
            probe.bind(target)
    except OSError:
        return False
    return True


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(LOOPBACK if host == "localhost" else host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
