"""A job of Slurm: a real slurmctld, and a slurmd on each of two hosts (network namespaces)."""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import CHECKPOINTED_TRAINING, LAUNCHER, read_until

SECONDS = 150  # `sbatch --wait` looks seldom
PROGRAMS = ["slurmctld", "slurmd", "srun", "sbatch", "salloc", "munged"]
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
pytestmark = [
    pytest.mark.processes,
    pytest.mark.long,
    NEEDS_ROOT,
    pytest.mark.skipif(
        bool(MISSING), reason=f"Slurm is not here ({', '.join(MISSING)}): apt-get install slurm-wlm munge"
    ),
]

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
NodeName=left NodeHostname={host} NodeAddr=10.77.0.1 CPUs=4 State=UNKNOWN
NodeName=right NodeHostname={host} NodeAddr=10.77.0.2 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=left,right Default=YES State=UP
"""


class Slurm:
    """A cluster of two nodes, used from the first of them."""

    def __init__(self, hosts):
        self._hosts = hosts
        folder = hosts.folder
        (folder / "key").write_bytes(secrets.token_bytes(1024))
        (folder / "key").chmod(0o600)
        (folder / "state").mkdir()
        host = socket.gethostname().partition(".")[0]
        (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder, host=host))
        self._environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        munge = [f"--{what}={folder}/{name}" for what, name in MUNGE_FILES.items()]
        for name in ("left", "right"):
            (folder / f"spool-{name}").mkdir()
        self._daemon(0, "munged", "--foreground", "--force", f"--key-file={folder}/key", *munge)
        self._daemon(0, "slurmctld", "-D")
        self._daemon(0, "slurmd", "-D", "-N", "left")
        self._daemon(1, "slurmd", "-D", "-N", "right")
        self._wait_for_nodes()

    def run(self, *command, code=0):
        """Run a command of Slurm's to its end, and return what it wrote."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TELEGRAD")}
        done = subprocess.run(
            [*self._hosts.on(0), *map(str, command)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=self._hosts.folder,
            env={**environment, **self._environment},
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, *command, **environment):
        """Start a command of Slurm's on the first node."""
        return self._hosts.run(0, command, **environment, **self._environment)

    def kill_launcher(self, host):
        """Kill the launcher on a node, as its power cut would; its guardian ends the workers."""
        found = subprocess.run(["ip", "netns", "pids", self._hosts.names[host]], capture_output=True, text=True)
        for pid in map(int, found.stdout.split()):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"--node-rank" in command and b"python" in command[0]:
                os.kill(pid, signal.SIGKILL)

    def _daemon(self, host, *command):
        log = f'exec "$0" "$@" > {self._hosts.folder}/{command[0]}-{host}.log 2>&1'
        self._hosts.run(host, ["sh", "-c", log, *command], **self._environment)

    def _wait_for_nodes(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                if self.run("sinfo", "--noheader", "--format=%D %T").split() == ["2", "idle"]:
                    return
            except AssertionError:  # slurmctld is not up yet
                pass
            logs = "".join(log.read_text() for log in self._hosts.folder.glob("*.log"))
            assert time.monotonic() < deadline, logs
            time.sleep(0.1)


MUNGE_FILES = {"socket": "munge", "pid-file": "munge.pid", "log-file": "munge.log", "seed-file": "munge.seed"}
RUN = [*LAUNCHER, "run", "--engine", "slurm"]
DEMO = ["-m", "telegrad.examples.parameter_server", "--epochs", "1"]


@pytest.fixture
def slurm(tmp_path):
    with made_hosts(tmp_path, 2, SECONDS) as hosts:
        yield Slurm(hosts)


def test_the_parameter_server_learns_in_an_allocation(slurm):
    said = slurm.run("salloc", "--nodes=2", *RUN, "-n", "2", *DEMO)
    assert "node 0 of 2: ranks 0 to 1 of 4, reached at 10.77.0.1" in said
    assert "node 1 of 2: ranks 2 to 3 of 4, reached at 10.77.0.2" in said
    assert "3 trainers" in said and "accuracy of the checkpoint" in said


def test_the_parameter_server_learns_in_a_batch_job(slurm, tmp_path):
    script = slurm.run(*RUN, "--nnodes", "2", "--roles", "ps,trainer=3", "--dry-run", *DEMO)
    (tmp_path / "job").write_text(script)
    slurm.run("sbatch", "--wait", f"--output={tmp_path}/said", tmp_path / "job")
    assert "accuracy of the checkpoint" in (tmp_path / "said").read_text()


def test_the_exit_code_is_that_of_the_cause(slurm, tmp_path):
    (tmp_path / "script.py").write_text(
        "import os, signal, sys\nfrom telegrad import rpc\nrpc.init_rpc()\n"
        "sys.exit(7) if os.environ['RANK'] == '1' else signal.pause()\n"
    )
    said = slurm.run("salloc", "--nodes=2", *RUN, "script.py", code=7)
    assert "root cause: node 1: worker1 (rank 1)" in said or "root cause: worker1 (rank 1)" in said, said


@pytest.mark.parametrize("host", [0, 1])
def test_a_node_that_is_lost_comes_back_and_the_training_ends_with_the_same_weights(slurm, tmp_path, host):
    def run(folder, cut):
        folder.mkdir()
        job = slurm.start("salloc", "--nodes=2", *RUN, "--restart", "all", "script.py", OUT=str(folder))
        if cut:
            number = re.search(r"allocation (\d+)", job.stderr.readline())[1]
            read_until(job, 3, f"worker{1 - host} | saved")
            slurm.kill_launcher(host)
            endpoint = f"10.77.0.1:{20000 + int(number)}"
            again = ["--nnodes", "2", "--node-rank", str(host), "--rdzv-endpoint", endpoint, "--restart", "all"]
            place = [
                f"--jobid={number}",
                "--overlap",
                "--nodes=1",
                "--ntasks=1",
                f"--nodelist={('left', 'right')[host]}",
            ]
            slurm.start("srun", *place, *LAUNCHER, "run", *again, "script.py", OUT=str(folder))
        out, err = job.communicate(timeout=SECONDS)
        return out + err, [(folder / f"weights{rank}.npy").read_bytes() for rank in (0, 1)]

    (tmp_path / "0" / "script.py").write_text(CHECKPOINTED_TRAINING)
    _, expected = run(tmp_path / "undisturbed", cut=False)
    said, weights = run(tmp_path / "cut", cut=True)
    assert (
        weights == expected and ("all 2 workers are started again" if host else "all workers are started again") in said
    )
