"""Folder with the credentials of one worker, which its launcher makes and its agent reads.

The environment names the folder only: what is in the environment, or on a command line, other users or logs may get to see.
"""

import os
from pathlib import Path

VARIABLE = "TELEGRAD_CREDENTIALS"
SECRET = "secret"
CERTIFICATE = "certificate.pem"
KEY = "key.pem"
AUTHORITY = "authority.pem"
GIVEN_UP = "given-up"
"""File beside the workers' folders: ranks of the workers that their launcher starts no more, each in a line."""

LEAVE = "leave"
"""File in a worker's folder: its launcher asks it to leave."""

LAUNCHER = ".launcher"
"""Socket beside the workers' folders, at which the launcher of an elastic job is asked for other workers."""


def folder() -> Path | None:
    """Return the folder of this process's worker; None if no launcher made one."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else None


def ranks_given_up() -> set[int]:
    """Return the ranks of the job's workers that have ended, and that their launcher does not start again."""
    if (own := folder()) is None:
        return set()
    try:
        return set(map(int, (own.parent / GIVEN_UP).read_text().split()))
    except OSError:
        return set()


def asked_to_leave() -> bool:
    """Return whether the launcher of this process has asked it to leave."""
    own = folder()
    return own is not None and (own / LEAVE).exists()


def launcher_socket() -> str:
    """Return the path of the socket of this process's launcher; empty if it has none."""
    own = folder()
    place = None if own is None else own.parent / LAUNCHER
    return str(place) if place is not None and place.is_socket() else ""


def remove_job(place: Path) -> None:
    """Remove the job's folder around the one of a worker: the launcher is gone, and the job with it."""
    import shutil  # only launchers come here, and workers import no compression for it

    shutil.rmtree(place.parent, ignore_errors=True)
