"""Part of a job that one launcher runs: its ranks, its workers' credentials, and the word that the whole job is to end."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ...base import job_credentials
from ..credentials import CredentialFolders
from .assignment import Placement


def worker_files(certificate: bytes, key: bytes, authority: bytes) -> dict[str, bytes]:
    """Return the files that a worker needs for TLS, all of them PEM.

    Args:
        certificate: the worker's.
        key: its private key.
        authority: certificate of the job's authority.
    """
    return {job_credentials.CERTIFICATE: certificate, job_credentials.KEY: key, job_credentials.AUTHORITY: authority}


class JobPart:
    """Part of a job on several machines, for the engine of this one.

    Args:
        placement: what this launcher runs.
        secret: the job's.
        files: what each of its workers gets beside the secret, in order of rank.
        listen_host: address at which the workers are to listen; None for the one at which others reach them.

    Attributes:
        placement: as given.
        folders: for the credentials of the workers.
        listen_host: as given.
        ended_because: why the job is to end; empty as long as it goes on.
        wake: descriptor of an event that says that ``ended_because`` has changed.
    """

    def __init__(
        self, placement: Placement, secret: str, files: Sequence[Mapping[str, bytes]], listen_host: str | None = None
    ) -> None:
        self.placement = placement
        self.folders = CredentialFolders(secret)
        self.listen_host = listen_host
        self.ended_because = ""
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._files = files

    def files(self, number: int) -> Mapping[str, bytes]:
        """Return the files that a worker gets beside the secret, by its number in this part."""
        return self._files[number]

    def begin_round(self, master_port: int) -> None:
        """Make this the part of a further round of the job, whose rank 0 listens at another port."""
        self.placement = replace(self.placement, master_port=master_port)
        self.ended_because = ""
        with suppress(BlockingIOError):  # nothing to take back
            os.eventfd_read(self.wake)

    def renew_folders(self) -> None:
        """Make new folders for credentials: an engine removes those that it had."""
        self.folders.close()
        self.folders = CredentialFolders(self.folders.secret)

    def end(self, reason: str) -> None:
        """Have the engine end the workers. Any thread; the first reason counts."""
        self.ended_because = self.ended_because or reason
        os.eventfd_write(self.wake, 1)

    def close(self) -> None:
        """Remove the credentials; ``end`` is not called any more."""
        self.folders.close()
        os.close(self.wake)
