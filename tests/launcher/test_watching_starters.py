"""Commands that watch, on jobs that mpiexec, ``spawn`` and a notebook's kernel started."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.launched import telegrad

WORKER = """
import time
from telegrad import rpc

def work(name=None, rank=None, size=None):
    options = {"rank": rank, "world_size": size} if size else {}
    rpc.init_rpc(name or "", **options) if name else rpc.init_rpc()
    if rpc.get_worker_info().id == 0:
        kept = rpc.remote("worker1", bytearray, args=(100_000,))
        kept.to_here()
        rpc.rpc_sync("worker1", time.sleep, args=(600,), timeout=0)
    rpc.shutdown()
"""
SPAWN = """
from job import work
from telegrad.launcher import spawn

def main(rank):
    work(f"worker{rank}", rank, 2)

if __name__ == "__main__":
    spawn(main, nprocs=2)
"""
MPIEXEC = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
KERNEL = """
import subprocess, sys
from nbclient import NotebookClient
import nbformat

cell = "from telegrad import rpc\\nfrom telegrad.launcher import local_cluster\\nimport time\\n"
cell += "cluster = local_cluster(2).__enter__()\\nkept = rpc.remote('worker1', bytearray, args=(100_000,))\\n"
cell += "kept.to_here()\\nrpc.rpc_sync('worker1', time.sleep, args=(600,), timeout=0)"
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
"""


def command_of(how):
    if how == "mpiexec":
        return [MPIEXEC, "-n", "2", sys.executable, "-c", "import job; job.work()"]
    return [sys.executable, f"{how}.py"]


@pytest.mark.processes
@pytest.mark.parametrize("how", ["spawned", "mpiexec", "kernel"])
def test_commands_find_a_job_however_it_was_started(here, until, how):
    if how == "mpiexec" and MPIEXEC is None:
        pytest.skip("mpiexec is not here: pip install mpich")
    if how == "kernel":
        pytest.importorskip("nbclient")
        pytest.importorskip("ipykernel")
    (here / "job.py").write_text(WORKER)
    (here / "spawned.py").write_text(SPAWN)
    (here / "kernel.py").write_text(KERNEL)
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command_of(how), cwd=here, env=dict(os.environ, PYTHONPATH=str(here)), **pipes) as process:
        try:
            until(lambda: "worker1" in telegrad("ps"))
            until(lambda: "the call of sleep on worker 'worker1'" in telegrad("why"))
            names = ["worker0", "worker1", *(["main"] if how == "kernel" else [])]
            (found,) = json.loads(telegrad("ps", "--json"))["jobs"]
            assert [each["worker"] for each in found["workers"]] == names
            top = json.loads(telegrad("top", "--once", "--json"))
            assert [each["worker"] for each in top["workers"]] == names and not any(
                each["error"] for each in top["workers"]
            )
            (reference,) = json.loads(telegrad("memory", "--json"))["references"]
            assert (reference["owner"], reference["type"]) == ("worker1", "bytearray")
            assert "worker1" in telegrad("stack", "worker1")
            ended = telegrad("kill")
            assert all(f"{name}: ended by SIG" in ended for name in names)
        finally:
            process.terminate()
            process.wait(60)
    until(lambda: telegrad("ps") == "no job of yours runs on this machine\n")
