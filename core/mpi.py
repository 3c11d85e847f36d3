"""MPI in this process: whether ``mpiexec`` started it, and mpi4py."""

from __future__ import annotations

import os
from typing import Any

VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")


def started_by_mpi() -> bool:
    """Return whether this process is one of those that ``mpiexec`` started (MPICH's, Open MPI's, or one that speaks PMIx)."""
    return any(name in os.environ for name in VARIABLES)


def load() -> Any:
    """Return mpi4py's module ``MPI``; the first call initializes MPI.

    Raises:
        ImportError: mpi4py or an MPI library is not installed.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"MPI needs mpi4py and an MPI library ({error}): pip install 'telegrad[mpi]'", name="mpi4py"
        ) from error
    return MPI
