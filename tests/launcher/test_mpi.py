"""Jobs of ``mpiexec`` and of ``telegrad run --engine mpi``: workers find one another through MPI, on one host and on two."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import LAUNCHER, LIMIT, MPIEXEC, NEEDS_MPI, Watched, ended, pids_in, read_until

pytestmark = [pytest.mark.processes, pytest.mark.slow, NEEDS_MPI]

WHO = """
import sys
from telegrad import rpc
from telegrad.rpc.extend import current_agent

def who():
    return rpc.get_worker_info().name, current_agent().credentials.tls is not None

if __name__ == "__main__":
    rpc.init_rpc(*sys.argv[1:])
    found = [rpc.rpc_sync(rank, who) for rank in range(int(sys.argv[2]) if len(sys.argv) > 2 else 4)]
    print("; ".join(map(str, found)), flush=True)  # one write: others write meanwhile
    rpc.shutdown()
"""


def four(tls):
    """Return what each of four workers says."""
    return "; ".join(f"('worker{rank}', {tls})" for rank in range(4))


@pytest.fixture
def script(tmp_path):
    def write(source):
        (tmp_path / "script.py").write_text(source)
        return str(tmp_path / "script.py")

    return write


def run(*command, code=0, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=LIMIT, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_workers_of_mpiexec_need_neither_names_nor_variables(script):
    said = run(MPIEXEC, "-n", "4", sys.executable, script(WHO))
    assert said.count(four(False)) == 4


def test_processes_that_do_not_come_are_told_of(script):
    source = """
from mpi4py import MPI
from telegrad.base.errors import RendezvousError
from telegrad import rpc
if MPI.COMM_WORLD.rank == 0:
    try:
        rpc.init_rpc(rpc_backend_options=rpc.GrpcRpcBackendOptions(init_timeout=0.3))
    except RendezvousError as error:
        print(error, flush=True)
    MPI.COMM_WORLD.Abort(3)
MPI.COMM_WORLD.Barrier()
"""
    assert "not all 2 processes of mpiexec called init_rpc within 0.3 s" in run(
        MPIEXEC, "-n", "2", sys.executable, script(source), code=3
    )


def test_a_world_size_that_is_not_mpis(script):
    source = "from telegrad import rpc\nrpc.init_rpc(world_size=3)"
    said = run(MPIEXEC, "-n", "2", sys.executable, script(source), code=1)
    assert "says world_size=3, others say 2" in said


def test_roles_and_variables_of_the_engine(script):
    source = f"""
import os
print("mine", os.environ["TELEGRAD_WORKER"], os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ.get("OWN"), flush=True)
{WHO}"""
    options = ["--engine", "mpi", "--roles", "ps,trainer=2", "--env", "ps:OWN=2"]
    lines = run(*LAUNCHER, "run", *options, "--module", "script", cwd=script(source).rpartition("/")[0], code=1)
    for rank, (name, own) in enumerate([("ps", 2), ("trainer0", None), ("trainer1", None)]):
        assert re.search(rf"^{name} +\| mine {name} {rank} 3 {own}$", lines, re.MULTILINE), lines
    assert "rank" in lines  # the script asks a rank that is not there, and its exception ends the job


FAILING = """
import signal, threading
from telegrad import rpc
rpc.init_rpc()
if rpc.get_worker_info().id == 2:
    threading.Thread(target=signal.pause).start()  # an exit handler would not run
    raise ValueError("no such luck")
signal.pause()
"""


def test_an_exception_under_mpiexec_ends_all(script):
    assert "ValueError: no such luck" in run(MPIEXEC, "-n", "3", sys.executable, script(FAILING), code=1)


def test_an_exception_ends_all(script):
    source = FAILING
    path = script(source)
    said = run(*LAUNCHER, "run", "--engine", "mpi", "-n", "3", path, code=1, cwd=path.rpartition("/")[0])
    assert "worker2 | ValueError: no such luck\n" in said and "mpi4py" not in said
    assert "root cause: worker2 (rank 2) exited with code 1\n" in said
    (log,) = Path(path).parent.glob("telegrad_runs/*/worker2.log")
    assert "ValueError: no such luck\n" in log.read_text() and "telegrad-report" not in log.read_text()


def test_ctrl_c_ends_all_and_leaves_no_process(job):
    source = """
from telegrad import rpc
rpc.init_rpc()
print("pid", os.getpid(), flush=True)
if rpc.get_worker_info().id == 0:
    signal.pause()
rpc.shutdown()  # two wait for the first
"""
    process = job(source, "--engine", "mpi", "-n", "3")
    watched = Watched(pids_in(read_until(process, 3, "pid")))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = ended(process, 130)
    assert watched.all_died()
    assert "telegrad: interrupted by SIGINT (2) after " in err and "root cause" not in err


@pytest.mark.long
def test_the_parameter_server_learns_with_three_ranks(tmp_path):
    demo = ["-m", "telegrad.examples.parameter_server", "--epochs", "1", "--out", tmp_path]
    said = run(*LAUNCHER, "run", "--engine", "mpi", "-n", "3", *demo)
    assert "2 trainers" in said and "accuracy of the checkpoint" in said


@NEEDS_ROOT
def test_workers_of_two_hosts_get_certificates_through_mpi(tmp_path, script):
    path = script(WHO)
    with made_hosts(tmp_path, 2) as hosts:
        remote = ["-launcher", "ssh", "-launcher-exec", hosts.ssh(), "-localhost", "10.77.0.1"]
        place = ["-hosts", "10.77.0.1,10.77.0.2", "-ppn", "2", "-n", "4"]
        out, _ = ended(hosts.run(0, [MPIEXEC, *remote, *place, sys.executable, path]), 0)
    assert out.count(four(True)) == 4
