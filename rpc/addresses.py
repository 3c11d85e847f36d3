"""Addresses of the loopback interface, each in one spelling: both ends of a handshake compare them as text."""

from __future__ import annotations

import ipaddress
import logging

from ..core.errors import RendezvousError

logger = logging.getLogger("telegrad.rpc")
LOOPBACK = "127.0.0.1"
EVERY_ADDRESS = ("0.0.0.0", "::")


def loopback_address(address: str) -> str:
    """Return "host:port" in its usual spelling: ``localhost:4711`` is ``127.0.0.1:4711``, ``::1:4711`` is ``[::1]:4711``.

    Raises:
        RendezvousError: it has no port, or is not on the loopback interface.
    """
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise RendezvousError(f"{port!r} is not a port; use a number from 1 to 65535")
    found = _ip(host.removeprefix("[").removesuffix("]"))
    if found is None or not found.is_loopback:
        raise RendezvousError(
            f"{host!r} is not an address of this machine alone; without TLS workers listen on loopback only, because "
            f"anybody who reaches a worker could try its secret. Use 127.0.0.1"
        )
    return f"[{found}]:{int(port)}" if found.version == 6 else f"{found}:{int(port)}"


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if host in EVERY_ADDRESS:
        logger.warning(
            "%s stands for every address of this machine; without TLS workers listen on loopback only, so %s is used",
            host,
            LOOPBACK,
        )
        host = LOOPBACK
    try:
        found = ipaddress.ip_address(LOOPBACK if host == "localhost" else host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
