"""Secrets of the jobs whose workers this process started, by port of the rendezvous, so that it can join them itself."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_secrets: dict[int, str] = {}


@contextmanager
def remembered(port: int, secret: str) -> Iterator[None]:
    """Keep the secret of the job whose rendezvous is at this port of the loopback."""
    with _lock:
        _secrets[port] = secret
    try:
        yield
    finally:
        with _lock:
            if _secrets.get(port) == secret:  # else a later job has the same port
                del _secrets[port]


def secret_of(port: int | None) -> str | None:
    """Return the secret of the job whose rendezvous is there; None if this process did not start it.

    Where no job was started for that place, and only one is under way, its workers may come together at another place than
    that of their environment: then the secret is theirs.

    Args:
        port: of the rendezvous; None if it has none.
    """
    with _lock:
        only = next(iter(_secrets.values())) if len(_secrets) == 1 else None
        return only if port is None else _secrets.get(port, only)
