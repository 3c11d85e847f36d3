"""Collectives of real processes over both backends, and what they say of wrong arguments."""

import subprocess
import sys
from pathlib import Path

import pytest
import telegrad as tg
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import LAUNCHER, MPIEXEC, NEEDS_MPI, ended
from helpers.programs import PROGRAMS, run_python
from telegrad import collective as dist
from telegrad.base.errors import CollectiveError
from telegrad.collective.extend import AgentGroup, registry, serve_groups
from telegrad.testing.cluster import in_process_cluster

DOCS = Path(__file__).parents[2] / "docs"


def over_the_agent(folder, count, *program):
    return run_python(*LAUNCHER[1:], "run", "-n", count, "--log-dir", folder / "logs", *program)


def over_mpi(count, *program):
    command = [MPIEXEC, "-n", str(count), sys.executable, *map(str, program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("program, count", [("collectives", 3), ("data_parallel", 4), ("averagers", 4)])
def test_over_the_agent(tmp_path, program, count):
    said = over_the_agent(tmp_path, count, PROGRAMS / f"{program}.py", "rpc")
    assert said.count("all right") == count


@pytest.mark.processes
@pytest.mark.slow
@NEEDS_MPI
@pytest.mark.parametrize(
    "program, count", [("collectives", 3), pytest.param("data_parallel", 4, marks=pytest.mark.soak)]
)
def test_over_mpi(program, count):
    assert over_mpi(count, PROGRAMS / f"{program}.py", "mpi").count("all right") == count


@pytest.mark.processes
@pytest.mark.soak
def test_eight_ranks(tmp_path):
    """Over MPI, which has its own algorithms, three show as much."""
    assert over_the_agent(tmp_path, 8, PROGRAMS / "collectives.py", "rpc").count("all right") == 8


@pytest.mark.processes
@pytest.mark.long
@pytest.mark.parametrize("over", ["rpc", pytest.param("mpi", marks=NEEDS_MPI)])
@pytest.mark.parametrize("size", [1 << 26, pytest.param(1 << 28, marks=pytest.mark.soak)])
def test_two_ranks_and_large_tensors(tmp_path, over, size):
    program = PROGRAMS / "collectives.py", over, size
    said = over_the_agent(tmp_path, 2, *program) if over == "rpc" else over_mpi(2, *program)
    assert said.count("all right") == 2


@pytest.mark.processes
@pytest.mark.slow
@NEEDS_ROOT
def test_over_two_hosts(tmp_path):
    with made_hosts(tmp_path, 2, 100) as hosts:
        path = str(PROGRAMS / "collectives.py")
        jobs = [hosts.launch(host, None, "-n", "2", name=path, args=("rpc",)) for host in range(2)]
        said = "".join(ended(job, 0)[0] for job in jobs)
    assert said.count("all right") == 4


@pytest.fixture
def alone():
    """The default group of one rank."""
    with in_process_cluster("rank0") as (agent,), agent.use():
        serve_groups(agent)
        registry.open(lambda name, ranks, timeout: AgentGroup(agent, name, ranks, timeout), [0], 5.0, lambda: None)
        yield agent
        if dist.is_initialized():
            dist.destroy_process_group()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: dist.all_reduce(x, "sum"), TypeError, "op must be a ReduceOp"),
        (lambda x: dist.all_reduce(x, dist.ReduceOp.BAND), TypeError, "op=BAND is for integers"),
        (lambda x: dist.all_reduce(x.long(), dist.ReduceOp.AVG), TypeError, "op=AVG is for floating-point"),
        (lambda x: dist.all_reduce(x + 0j, dist.ReduceOp.MAX), TypeError, "complex numbers have none"),
        (lambda x: dist.all_reduce([x]), TypeError, "tensor must be a dense tensor; you gave list"),
        (lambda x: dist.all_reduce(x, group="world"), TypeError, "group must be a ProcessGroup"),
        (lambda x: dist.broadcast(x), ValueError, "src must be given"),
        (lambda x: dist.broadcast(x, 3), ValueError, "src must be one of the ranks"),
        (lambda x: dist.broadcast(x, 0, group_src=0), ValueError, "say the same"),
        (lambda x: dist.reduce(x, group_dst=1), ValueError, "group_dst must be 0 to 0"),
        (lambda x: dist.all_gather([], x), ValueError, "tensor_list must have 1 tensors"),
        (lambda x: dist.all_gather(x, x), TypeError, "tensor_list must be a list"),
        (lambda x: dist.all_gather([x.double()], x), ValueError, "must agree"),
        (lambda x: dist.scatter(x), TypeError, "scatter_list must be a list"),
        (lambda x: dist.all_to_all_single(x, x, [1], [2]), ValueError, "input_split_sizes"),
        (lambda x: dist.send(x, 0), ValueError, "cannot send to itself"),
        (lambda x: dist.all_gather_object([], x), ValueError, "object_list must be a list of 1"),
        (lambda x: dist.gather_object(x), ValueError, "object_gather_list is given at rank 0"),
        (lambda x: dist.new_group([0, 1]), ValueError, "ranks must be different ranks of"),
        (lambda x: dist.new_group(timeout=-1), ValueError, "timeout must be a timedelta"),
        (lambda x: dist.init_process_group("nccl"), ValueError, "backend must be one of"),
        (lambda x: dist.init_process_group("rpc"), CollectiveError, "default process group already"),
    ],
)
def test_wrong_arguments(alone, call, error, words):
    with pytest.raises(error, match=words):
        call(tg.ones(3))


def test_one_rank_alone(alone):
    x = tg.ones(3)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    assert dist.all_reduce(x, async_op=True).wait(5) is x and x.tolist() == [1.0] * 3
    dist.barrier()
    dist.destroy_process_group()
    with pytest.raises(CollectiveError, match="call init_process_group"):
        dist.barrier()


def test_a_change_counts_for_gradients(alone):
    weight = tg.ones(3, requires_grad=True)
    twice = weight * 2
    product = (twice * twice).sum()
    dist.all_reduce(twice)
    with pytest.raises(RuntimeError, match=r"changed|modified"):
        product.backward()
