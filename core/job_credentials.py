"""Folder with the credentials of one worker, which its launcher makes and its agent reads.

The environment names the folder only: what is in the environment, or on a command line, other users or logs may get to see.
"""

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "TELEGRAD_CREDENTIALS"
SECRET = "secret"
CERTIFICATE = "certificate.pem"
KEY = "key.pem"
AUTHORITY = "authority.pem"


def folder() -> Path | None:
    """Return the folder of this process's worker; None if no launcher made one."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else None


def write(place: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Make a folder with files that only this user can read, and return the environment variable that names it.

    Args:
        place: the folder, which does not exist yet.
        files: their contents, by name.

    Raises:
        OSError: it cannot be written.
    """
    place.mkdir(mode=0o700)
    for name, content in files.items():
        with open(os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    return {VARIABLE: str(place)}


def remove_job(place: Path) -> None:
    """Remove the job's folder around one that ``write`` made: the launcher is gone, and the job with it."""
    import shutil  # only launchers come here, and workers import no compression for it

    shutil.rmtree(place.parent, ignore_errors=True)
