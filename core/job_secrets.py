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


def secret_of(port: int) -> str | None:
    """Return the secret of the job whose rendezvous is there; None if this process did not start it."""
    with _lock:
        return _secrets.get(port)
