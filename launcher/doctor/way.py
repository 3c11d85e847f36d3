"""Checks of the way from this machine to another: name, route, port."""

import socket
from collections.abc import Iterator
from typing import Any

from .finding import Finding, ok, problem

DOCTOR_CONNECT_SECONDS = 5.0


def check_way(host: str, port: int) -> Iterator[Finding]:
    """Yield what is found on the way to "host:port", every address of the host in turn."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        yield problem(
            "name", f"{host!r} has no address: {error.strerror}", "check the spelling, /etc/hosts and the name server"
        )
        return
    yield ok("name", f"{host!r} is {', '.join(str(each[4][0]) for each in found)}")
    for family, _, _, _, address in found:
        yield _connection(family, address)


def _connection(family: int, address: tuple[Any, ...]) -> Finding:
    at = f"{address[0]} port {address[1]}"
    with socket.socket(family) as stream:
        stream.settimeout(DOCTOR_CONNECT_SECONDS)
        try:
            stream.connect(address)
        except ConnectionRefusedError:
            return problem(
                at,
                "nobody listens there, or a firewall refuses",
                "start the launcher of machine 0, or `telegrad doctor --listen`, there",
            )
        except TimeoutError:
            return problem(
                at,
                f"no answer within {DOCTOR_CONNECT_SECONDS:g} s",
                "a firewall drops the packets, or the machine is off: open the port",
            )
        except OSError as error:
            return problem(
                at, error.strerror or str(error), "check the interfaces and routes of both machines: ip addr, ip route"
            )
        return ok(at, f"connected, from {stream.getsockname()[0]}")
