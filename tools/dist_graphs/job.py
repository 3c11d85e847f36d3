"""``on_processes``: a job of processes that ends with a result, over one lane."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...agents import init_rpc
from ...launcher import spawn
from ...rpc import shutdown
from ...rpc.extend import GrpcRpcBackendOptions

LANES = {"unix": ["unix", "grpc"], "tcp": ["tcp", "grpc"], "grpc": ["grpc"]}
Work = Callable[[range, int], Any]


def on_processes(work: Work, lane: str, seeds: range, workers: int) -> Any:
    """Return what a function returns on the first of some processes, after JSON.

    Args:
        work: the function; it gets ``seeds`` and ``workers``.
        lane: a key of ``LANES``.
        seeds: the seeds.
        workers: number of processes.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        spawn(_serve, (work, lane, seeds, workers, str(path)), workers)
        return json.loads(path.read_text())


def _serve(rank: int, work: Work, lane: str, seeds: range, workers: int, path: str) -> None:
    init_rpc(f"w{rank}", rpc_backend_options=GrpcRpcBackendOptions(lanes=LANES[lane]))
    if rank == 0:
        Path(path).write_text(json.dumps(work(seeds, workers)))
    shutdown()
