"""Jobs of ``telegrad run --engine ray``: actors on this machine, and on two hosts (network namespaces) of one Ray cluster."""

import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager

import pytest
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import LAUNCHER, ended, pids_in, read_until

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
pytestmark = [pytest.mark.processes, pytest.mark.long]

SECONDS = 500  # starting Ray takes long on a busy machine
RUN = [*LAUNCHER, "run", "--engine", "ray"]
DEMO = ["-m", "telegrad.examples.parameter_server", "--epochs", "1"]
WHO = """
import os
from telegrad import rpc
from telegrad.rpc.extend import current_agent

def who():
    local = f"{os.environ['LOCAL_RANK']}/{os.environ['LOCAL_WORLD_SIZE']}"
    return rpc.get_worker_info().name, local, current_agent().credentials.tls is not None

if __name__ == "__main__":
    rpc.init_rpc(os.environ["TELEGRAD_WORKER"])
    if os.environ["RANK"] == "0":
        print(*(rpc.rpc_sync(rank, who) for rank in range(int(os.environ["WORLD_SIZE"]))), flush=True)
    rpc.shutdown()
"""
WAIT = "import os, signal\nprint(f'pid {os.getpid()}', flush=True)\nsignal.pause()\n"


@contextmanager
def job(folder, source, *options):
    """Start a job on a Ray cluster of its own, which goes with it."""
    (folder / "script.py").write_text(source)
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [*RUN, *options, "script.py"]
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_worker_that_failed_is_named_and_its_code_returned(tmp_path):
    source = "import os, sys\nprint('x' * 200_000)\n" + WHO.replace("rpc.shutdown()", "sys.exit(7)")
    with job(tmp_path, source, "--roles", "ps,trainer", "--env", "trainer:EXTRA=1") as process:
        out, err = ended(process, 7)
    assert out.count("x") >= 400_000
    assert re.search(r"root cause: \w+ \(rank [01]\) exited with code 7", err), err


def test_an_interrupted_job_leaves_no_worker(tmp_path):
    with job(tmp_path, WAIT, "-n", "2") as process:
        workers = [os.pidfd_open(pid) for pid in pids_in(read_until(process, 2, "pid"))]
        process.send_signal(signal.SIGINT)
        assert "interrupted by SIGINT" in ended(process, 130)[1]
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            signal.pidfd_send_signal(worker, 0)
        os.close(worker)


class RayHosts:
    """Ray cluster of two hosts, used from the first of them."""

    def __init__(self, hosts):
        self._hosts = hosts
        own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_ADDRESS": "10.77.0.1:6379"}
        self._environment = own
        temp = f"--temp-dir={tempfile.gettempdir()}/telegrad-ray-{os.getpid()}"  # paths of its sockets must be short
        self._start(0, "--head", "--port=6379", "--include-dashboard=false", temp)
        self._start(1, "--address=10.77.0.1:6379")

    def run(self, *command):
        return ended(self._hosts.run(0, command, **self._environment), 0)

    def _start(self, host, *options):
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=2", *options]
        script = 'until "$0" "$@" >> ray.log 2>&1; do sleep 1; done'  # the first may not be up yet
        where = f"--node-ip-address=10.77.0.{host + 1}"
        self._hosts.run(host, ["sh", "-c", script, *command, where], **self._environment)


@NEEDS_ROOT
def test_workers_of_two_hosts_have_certificates_and_the_parameter_server_learns(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WHO)
    with made_hosts(tmp_path, 2, SECONDS) as hosts:
        cluster = RayHosts(hosts)
        out, err = cluster.run(*RUN, "-n", "4", script)
        assert " ".join(f"('worker{rank}', '{rank % 2}/2', True)" for rank in range(4)) in out, out + err
        out, err = cluster.run(*RUN, "--roles", "ps,trainer=3", *DEMO, "--out", tmp_path)
        assert "3 trainers" in out and "accuracy of the checkpoint" in out, out + err
