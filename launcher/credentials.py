"""Credentials of a job's workers on this machine: a folder for each, which goes with the job."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..core import job_credentials

IN_MEMORY = "/dev/shm"


class CredentialFolders:
    """Folders for the workers of one job: mode 0700, in memory where the system has a place for that.

    Args:
        secret: the job's secret; None draws one.

    Attributes:
        secret: the job's secret, which every folder holds.
        root: the folder that holds all.
    """

    def __init__(self, secret: str | None = None) -> None:
        self.secret = secret or secrets.token_hex(32)
        self.root = Path(tempfile.mkdtemp(prefix="telegrad-", dir=_place()))

    def add(self, worker: str, files: Mapping[str, bytes] | None = None) -> dict[str, str]:
        """Make a worker's folder and return the environment variable that names it.

        Args:
            worker: its name.
            files: further files beside the secret: its certificate, its key, its authority.

        Raises:
            OSError: the folder cannot be written.
        """
        return job_credentials.write(
            self.root / worker, {job_credentials.SECRET: self.secret.encode(), **(files or {})}
        )

    def close(self) -> None:
        """Remove all folders."""
        shutil.rmtree(self.root, ignore_errors=True)


def _place() -> str | None:
    """Return the folder for temporary files of this user; None for the system's."""
    for place in (os.environ.get("XDG_RUNTIME_DIR"), IN_MEMORY):
        if place and os.access(place, os.W_OK | os.X_OK):
            return place
    return None
