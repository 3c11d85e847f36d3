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


def remove_job(place: Path) -> None:
    """Remove the job's folder around the one of a worker: the launcher is gone, and the job with it."""
    import shutil  # only launchers come here, and workers import no compression for it

    shutil.rmtree(place.parent, ignore_errors=True)
