"""Secrets of the jobs whose workers this process started, by port, so that it can join one of them itself."""

import threading

_lock = threading.Lock()
_secrets: dict[int, str] = {}


def remember(port: int, secret: str) -> None:
    """Keep the secret of the job that meets at this port of the loopback."""
    with _lock:
        _secrets[port] = secret


def forget(port: int, secret: str) -> None:
    """Remove that job's secret, but not that of a later job at the same port."""
    with _lock:
        if _secrets.get(port) == secret:
            del _secrets[port]


def secret_of(port: int) -> str | None:
    """Return the secret of the job that meets there; None if this process did not start it."""
    with _lock:
        return _secrets.get(port)
