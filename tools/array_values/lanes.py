"""Values over every lane: between real processes, and between agents in this one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from ...agents import init_rpc
from ...launcher import spawn
from ...rpc import rpc_sync, shutdown
from ...rpc.certificates import Authority
from ...rpc.extend import GrpcRpcBackendOptions
from ...rpc.security.tls import TlsFiles
from ...testing.cluster import in_process_cluster
from .compare import Comparison
from .objects import Maker

LANES: dict[str, list[str] | None] = {
    "inproc": None,
    "unix": ["unix", "grpc"],  # large arrays in shared memory
    "tcp": ["tcp", "grpc"],
    "tls": ["tcp", "grpc"],
    "grpc": ["grpc"],
}
WORKERS = ("here", "there")
Problems = dict[str, list[str]]  # by seed


def check(lane: str, seeds: range) -> Problems:
    """Send the objects of some seeds there and back over one lane, and return what was wrong with which.

    Args:
        lane: a key of ``LANES``.
        seeds: the seeds.
    """
    if lane == "inproc":
        with in_process_cluster(*WORKERS) as agents, agents[0].use():
            return check_here(seeds)
    with tempfile.TemporaryDirectory() as folder:
        if lane == "tls":
            _write_certificates(Path(folder))
        spawn(_work, (lane, seeds.start, seeds.stop, folder), len(WORKERS))
        problems: Problems = json.loads((Path(folder) / "result.json").read_text())
    return problems


def check_here(seeds: range) -> Problems:
    """Send the objects of some seeds from this worker, and return what was wrong with which."""
    return {f"seed {seed}": each for seed in seeds if (each := _one(seed))}


def _one(seed: int) -> list[str]:
    value = Maker(seed).make()
    try:
        return Comparison().run(value, rpc_sync(WORKERS[1], same, (value,)))
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def same(value: Any) -> Any:
    """Return the argument."""
    return value


def _work(rank: int, lane: str, first: int, end: int, folder: str) -> None:
    Maker(0)  # imports the libraries, which takes some time, before there are calls with a time-out
    tls = _files(Path(folder), WORKERS[rank]) if lane == "tls" else None
    init_rpc(WORKERS[rank], rpc_backend_options=GrpcRpcBackendOptions(lanes=LANES[lane], tls=tls))
    if rank == 0:
        (Path(folder) / "result.json").write_text(json.dumps(check_here(range(first, end))))
    shutdown()


def _write_certificates(folder: Path) -> None:
    jobs = Authority("values.test")
    for worker in WORKERS:
        files, issued = _files(folder, worker), jobs.issue(worker)
        parts = {files.certificate: issued.certificate, files.key: issued.key, files.ca: jobs.certificate}
        for place, content in parts.items():
            Path(place).touch(0o600)
            Path(place).write_bytes(content)


def _files(folder: Path, worker: str) -> TlsFiles:
    certificate, key, ca = (folder / f"{worker}.{part}" for part in ("certificate", "key", "ca"))
    return TlsFiles(certificate, key, ca, rank0_name="values.test")
