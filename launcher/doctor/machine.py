"""Checks of this machine alone."""

import importlib.util
import os
import resource
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ...base.errors import AuthenticationError
from ..clusters.mpi import find_mpiexec
from ..environment import reserve_port
from ..nodes.inquiry import versions
from .finding import Finding, ok, problem, warning

MIB = 1 << 20
LEAST_FILES = 1024
LEAST_MEMORY = 64 * MIB


def check_machine() -> Iterator[Finding]:
    """Yield what is found on this machine."""
    yield ok("versions", ", ".join(f"{name} {number}" for name, number in versions().items()))
    yield _shared_memory(Path("/dev/shm"))
    yield _memfd()
    yield _files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield _loopback()
    yield own_name(socket.gethostname())
    yield _credentials()
    yield _certificates()
    yield _mpi()


def _shared_memory(folder: Path) -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return problem(
            "shared memory",
            f"{folder} cannot be written: {error.strerror}",
            "mount a tmpfs there (in containers: --shm-size)",
        )
    text = f"{free // MIB} MiB free in {folder}"
    if free < LEAST_MEMORY:
        return warning("shared memory", text, "tensors of data loaders go there: give the container more (--shm-size)")
    return ok("shared memory", text)


def _memfd() -> Finding:
    try:
        os.close(os.memfd_create("telegrad-doctor"))
    except (OSError, AttributeError) as error:
        return problem(
            "memory files",
            f"memfd_create fails: {error}",
            "use Linux 3.17 or newer, and allow the call in the container",
        )
    return ok("memory files", "memfd_create works")


def _files(most: int) -> Finding:
    if most != resource.RLIM_INFINITY and most < LEAST_FILES:
        return warning("open files", f"at most {most}", f"allow more for jobs of many workers: ulimit -n {LEAST_FILES}")
    return ok("open files", "without limit" if most == resource.RLIM_INFINITY else f"at most {most}")


def _loopback() -> Finding:
    try:
        reserve_port().close()
    except OSError as error:
        return problem("loopback", f"no port can be had: {error.strerror}", "bring the interface up: ip link set lo up")
    return ok("loopback", "ports can be had")


def own_name(name: str) -> Finding:
    """Return what is found about this machine's own name: others may be told to reach it by that.

    Args:
        name: the name.
    """
    try:
        found = sorted({str(each[4][0]) for each in socket.getaddrinfo(name, None)})
    except OSError as error:
        return warning(
            "name",
            f"{name!r} has no address: {error.strerror}",
            "use an address for --rdzv-endpoint, or add the name to /etc/hosts",
        )
    text = f"{name!r} is {', '.join(found)}"
    if all(address.startswith("127.") or address == "::1" for address in found):
        return warning(
            "name", f"{text}: on this machine only", "use this machine's address on the network for --rdzv-endpoint"
        )
    return ok("name", text)


def _credentials() -> Finding:
    from ..credentials import CredentialFolders

    try:
        with closing(CredentialFolders()) as folders:
            folders.add("doctor")
    except OSError as error:
        return problem("credentials", *str(error).split("; ", 1))
    return ok("credentials", f"private folders are made in {folders.root.parent}")


def _certificates() -> Finding:
    from ...rpc.certificates import Authority, check

    authority = Authority("doctor.telegrad")
    issued = authority.issue("worker")
    try:
        check(issued.certificate, issued.key, authority.certificate, "a new certificate")
    except AuthenticationError as error:
        return problem("certificates", str(error), "set the clock")
    return ok("certificates", "an authority and a certificate were made, and fit together")


def _mpi() -> Finding:
    found = [name for name in ("mpi4py",) if importlib.util.find_spec(name)]
    return ok("MPI", ", ".join([*found, find_mpiexec() or "no mpiexec"]) + " (jobs do not need it)")
