"""Telegrad on its own choice of lanes, or on the one that the transport names; ``inproc`` has all workers in one process.

``tls`` is TCP with mutual TLS, for which ``openssl`` makes one certificate for all workers.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import telegrad as tg
from telegrad.pipelining import Pipeline

from .base import Api, Place
from .torch_model import TorchModel, worker_name

CERTIFICATE_TIMEOUT_S = 30.0
LANES = {"default": None, "tls": ["tcp"]}


def make(transport: str) -> TorchModel:
    """Return the library on that lane."""
    if transport == "inproc":
        return InOneProcess()
    return OnLanes(LANES.get(transport, [transport]), encrypted=transport == "tls")


class Telegrad(TorchModel):
    """Telegrad, whatever its workers are."""

    def __init__(self, groups: Any = None) -> None:
        super().__init__(Api(tg, tg.rpc, tg.autograd_dist, tg.DistributedOptimizer, groups, make_pipeline))
        self.versions = {"telegrad": tg.__version__, "numpy": np.__version__, "grpcio": grpc.__version__}


class OnLanes(Telegrad):
    """Workers in processes of their own."""

    def __init__(self, lanes: list[str] | None, encrypted: bool) -> None:
        super().__init__(tg.collective)
        self.options = tg.rpc.GrpcRpcBackendOptions(lanes=lanes)
        self._encrypted = encrypted

    def join(self, rank: int, world: int, place: Place) -> None:
        if self._encrypted:
            self.options.tls = certificate(place.folder, make=rank == 0)
        if place.port:
            self.options.init_method = f"tcp://127.0.0.1:{place.port}"
        tg.rpc.init_rpc(worker_name(rank), rank=rank, world_size=world, rpc_backend_options=self.options)


class InOneProcess(Telegrad):
    """Workers that are agents of one process, on the in-process lane."""

    def join(self, rank: int, world: int, place: Place) -> None:
        from telegrad.testing import in_process_cluster  # no other worker needs its memory

        self._stack = ExitStack()
        agents = self._stack.enter_context(in_process_cluster(*map(worker_name, range(world))))
        self._stack.enter_context(agents[0].use())

    def leave(self) -> None:
        self._stack.close()


def make_pipeline(make: Callable[[int], Any], microbatches: int, inputs: Any, targets: Any) -> Callable[[], Any]:
    """Return a step, forward and backward: the first worker drives, and has the first stage.

    Args:
        make: returns the module of a stage.
        microbatches: into how many parts the batch is cut.
        inputs: of a whole batch.
        targets: likewise.
    """
    group = tg.collective
    if group.get_rank():
        return lambda: None
    stages = [tg.RemoteModule(worker_name(rank), make, (rank,)) for rank in range(group.get_world_size())]
    pipeline = Pipeline(stages, tg.nn.functional.mse_loss, microbatches)
    return lambda: pipeline.step(inputs, targets)


def certificate(folder: Path, make: bool) -> tg.rpc.TlsFiles:
    """Return a certificate, its key, and itself as the authority; one worker makes it, the others wait until it is there."""
    new, ready, name = folder / "new", folder / "tls", "benchmark"
    if make:
        new.mkdir()
        files = ["-keyout", str(new / "key"), "-out", str(new / "certificate")]
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
        named = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        subprocess.run(["openssl", "req", "-x509", *kind, *named, *files], check=True, stderr=subprocess.DEVNULL)
        os.rename(new, ready)
    deadline = time.monotonic() + CERTIFICATE_TIMEOUT_S
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return tg.rpc.TlsFiles(ready / "certificate", ready / "key", ready / "certificate", rank0_name=name)
