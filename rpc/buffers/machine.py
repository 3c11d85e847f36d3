"""Name of the machine that a process sees: processes that see the same one may map each other's memory."""

from __future__ import annotations

import os
import secrets
from functools import cache


@cache
def machine_name() -> bytes:
    """Return a name that all processes of this machine have which see each other; a random one if the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return (
                file.read().strip() + b"/%d" % os.stat("/proc/self/ns/pid").st_ino
            )  # a container has processes of its own
    except OSError:
        return secrets.token_bytes(16)
