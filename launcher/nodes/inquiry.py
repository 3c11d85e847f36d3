"""Inquiry of ``telegrad doctor`` at another machine's launcher or doctor: each tells the other its versions and its clock."""

import json
import platform
import socket
import time
from importlib.metadata import version
from typing import Any

PACKAGES = ("telegrad", "numpy", "grpcio", "protobuf", "cryptography")


def own_protocol() -> int:
    """Return the number of the protocol that workers speak here."""
    from ...rpc.extend import PROTOCOL  # loads much, which jobs on one machine do without

    return PROTOCOL


def versions() -> dict[str, str]:
    """Return the versions of Python, of the workers' protocol, and of the packages that they use."""
    own = {"python": platform.python_version(), "protocol": str(own_protocol())}
    return {**own, **{name: version(name) for name in PACKAGES}}


def facts() -> dict[str, Any]:
    """Return the facts of this machine that others compare with theirs."""
    return {"name": socket.gethostname(), "versions": versions(), "clock": time.time()}


def inquires(message: bytes) -> bool:
    """Return whether another machine's first message is an inquiry, and not a launcher's that wants to join a job."""
    try:
        return "versions" in json.loads(message)
    except (ValueError, TypeError):
        return False
