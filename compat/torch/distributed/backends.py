"""Names of what carries process groups (``torch.distributed.Backend``), and which of them are here."""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar


class Backend(str):
    """Name of a backend in lower case (``torch.distributed.Backend``). "gloo" and "mpi" are here; others have names only.

    Raises:
        ValueError: the name is no text.
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    FAKE = "fake"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f'Backend() takes a name such as "gloo"; you gave {name!r}')
        return super().__new__(cls, name.lower())


def is_gloo_available() -> bool:
    """Return ``True``: "gloo" means groups over the lanes of calls."""
    return True


def is_mpi_available() -> bool:
    """Return whether mpi4py is installed."""
    return find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Return ``False``: there is no GPU."""
    return False


def is_backend_available(backend: str) -> bool:
    """Return whether ``init_process_group`` takes a backend.

    Args:
        backend: its name.
    """
    name = Backend(backend)
    return name == Backend.GLOO or (name == Backend.MPI and is_mpi_available())
