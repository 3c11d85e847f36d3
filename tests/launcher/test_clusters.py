"""Commands, batch scripts and manifests of ``telegrad run --engine``."""

import json
import shlex

import pytest
from telegrad.launcher.cli import app
from telegrad.launcher.clusters.job import ClusterJob
from telegrad.launcher.clusters.ray_job import placements
from telegrad.launcher.clusters.ray_worker import Spot
from telegrad.launcher.clusters.slurm import srun
from telegrad.launcher.nodes.token import new_token
from typer.testing import CliRunner


@pytest.fixture
def told(tmp_path, monkeypatch):
    """``told(*options)`` is what ``telegrad run --dry-run`` prints, or why it refuses."""
    monkeypatch.chdir(tmp_path)
    for name in ("TELEGRAD_TOKEN", "SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.py").touch()

    def run(*options, dry=True, code=0, script=("train.py", "--epochs", "3")):
        result = CliRunner().invoke(app, ["run", *["--dry-run"] * dry, *options, *script])
        assert result.exit_code == code, result.output
        return result.output

    return run


def test_mpiexec_starts_each_worker_with_its_variables(told):
    words = shlex.split(
        told("--engine", "mpi", "--roles", "ps,trainer=2", "--env", "ps:A=b c", "--hosts", "left,right")
    )
    start = words.index("-n")
    assert words[:start] == ["mpiexec", "-prepend-rank", "-hosts", "left,right", "-ppn", "2"]
    parts = " ".join(words[start:]).split(" : ")
    assert parts[0].startswith("-n 1 -env A b c -env RANK 0 -env WORLD_SIZE 3 -env TELEGRAD_WORKER ps ")
    assert parts[2].startswith("-n 1 -env RANK 2 -env WORLD_SIZE 3 -env TELEGRAD_WORKER trainer1 ")
    assert all(part.endswith("-m telegrad.launcher.clusters.mpi_worker train.py --epochs 3") for part in parts)


def test_a_role_on_several_machines_is_shown_with_its_own_variables(told):
    place = ["--nnodes", "2", "--rdzv-endpoint", "node0:29400", "--roles", "ps,trainer=2"]
    _, ps, trainers = told(*place, "--env", "ps:A=b c", "--env", "ALL=1").splitlines()
    assert ps.startswith("ps: ") and "A='b c'" in ps and "ALL=1" in ps
    assert trainers.startswith("trainer0, trainer1: ") and " A=" not in trainers and "ALL=1" in trainers
    assert told(*place, "--env", "ALL=1").splitlines()[1].startswith("each worker: ")


def test_restarts_are_for_the_launchers_of_the_machines(told):
    options = ["--restart", "trainer=one,ps=all", "--max-restarts", "3", "--within", "60"]
    for engine in (["slurm"], ["kubernetes", "--image", "train:1"]):
        output = told("--engine", *engine, "--nnodes", "2", "--roles", "ps,trainer=3", *options)
        assert all(word in output for word in ("trainer=one,ps=all", "--max-restarts", "--within"))
        assert "the role 'trainer', which this job does not have" in told("--engine", *engine, *options, code=2)


@pytest.mark.parametrize("engine, policy", [("mpi", "all"), ("ray", "one"), ("slurm", "rest"), ("kubernetes", "rest")])
def test_an_engine_that_cannot_follow_a_policy_says_so(told, engine, policy):
    output = told("--engine", engine, "--restart", policy, code=2)
    assert f"--restart {policy} is not for --engine {engine}, which can follow never" in output


def test_the_batch_script_runs_the_same_command_inside_the_allocation(told):
    script = told("--engine", "slurm", "--nnodes", "2", "-n", "4", "--no-preload", "--env", "A=b c").splitlines()
    assert script[:5] == [
        "#!/bin/sh",
        "#SBATCH --job-name=train",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --cpus-per-task=4",
    ]
    words = shlex.split(script[5])
    assert words[0] == "exec" and words[2:5] == ["-m", "telegrad.launcher", "run"]
    assert words[-5:] == ["--engine", "slurm", "train.py", "--epochs", "3"]
    assert set(words) >= {"--no-preload", "A=b c", "--nproc-per-node"} and "--dry-run" not in words


def test_srun_starts_one_launcher_on_each_node(monkeypatch):
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    job = ClusterJob("train.py", ("a b",), ("--pin",), ("worker0",), False, {})
    command = srun(job, 2, "10.0.0.1:20007", ["n1", "n2", "n3"])
    assert command[:5] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--nodelist=n1,n2"]
    assert command[5:7] == ["sh", "-c"]
    assert command[7].endswith(
        "run --pin --nnodes 2 --rdzv-endpoint 10.0.0.1:20007 --node-rank \"$SLURM_NODEID\" train.py 'a b'"
    )


def test_ray_places_each_worker_by_itself(told, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    first, ps, _, last = told("--engine", "ray", "--roles", "ps,trainer=2").splitlines()
    assert first == "3 actors of one core each; Ray: 10.0.0.1:6379"
    assert ps.startswith("ps: ") and last.startswith("trainer1: ") and last.endswith("train.py --epochs 3")


def test_ranks_of_ray_are_blocks_and_machines_count_their_own():
    spots = [Spot(machine, f"10.0.0.{machine}", "1") for machine in "aab"]
    parts = placements(spots, ["A", "A", "B"], 4711, ("ps", "t0", "t1"))
    assert [(part.node, part.first_rank, part.workers, part.local_rank, part.local_size) for part in parts] == [
        (0, 0, ("ps",), 0, 2),
        (0, 1, ("t0",), 1, 2),
        (1, 2, ("t1",), 0, 1),
    ]
    assert {(part.nodes, part.world_size, part.master_host, part.master_port) for part in parts} == {(2, 3, "A", 4711)}


def test_the_manifest_starts_one_launcher_in_each_pod(told, monkeypatch):
    monkeypatch.setenv("TELEGRAD_TOKEN", token := new_token())
    options = ["--engine", "kubernetes", "--nnodes", "2", "--roles", "ps,trainer=6", "--image", "registry/train:1"]
    manifest = json.loads(told(*options, script=("-m", "package.Train_It", "$(HOME)")))
    secret, service, job = manifest["items"]
    assert [item["kind"] for item in (secret, service, job)] == ["Secret", "Service", "Job"]
    assert {item["metadata"]["name"] for item in manifest["items"]} == {"train-it"}
    assert secret["stringData"] == {"token": token}
    assert service["spec"]["clusterIP"] == "None"
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    command = container["command"]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2 and pod["subdomain"] == "train-it"
    assert command[:4] == ["python3", "-m", "telegrad.launcher", "run"] and command[-1] == "$$(HOME)"
    at = command.index("--node-rank")
    assert command[at + 1] == "$(JOB_COMPLETION_INDEX)" and "train-it-0.train-it:29400" in command
    assert container["resources"]["requests"]["cpu"] == "4" and token not in json.dumps(job)


def test_the_manifest_fits_kubernetes_schema(told):
    validate = pytest.importorskip("kubernetes_validate")
    manifest = json.loads(told("--engine", "kubernetes", "--nnodes", "3", "-n", "2", "--image", "train"))
    for item in manifest["items"]:
        validate.validate(item, "1.30", strict=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "yarn"], "--engine must be one of mpi, slurm, kubernetes, ray"),
        (["--hosts", "a"], "--engine must be one of"),
        (["--engine", "slurm", "--node-rank", "1"], "for machines that you start by hand"),
        (["--engine", "slurm", "--nnodes", "2:4"], "write --nnodes 4"),
        (["--engine", "mpi", "--nnodes", "2"], "--nnodes is not for --engine mpi"),
        (["--engine", "mpi", "--pin"], "--pin is not for --engine mpi"),
        (["--engine", "ray", "--nnodes", "2"], "--nnodes is not for --engine ray: Ray knows the machines"),
        (["--engine", "ray", "--hosts", "a,b"], "--hosts is not for --engine ray"),
        (["--engine", "ray", "--pin"], "--pin is not for --engine ray"),
        (["--engine", "kubernetes"], "needs --image"),
        (["--engine", "kubernetes", "--image", "x", "--hosts", "a"], "--hosts and --rdzv-endpoint are not"),
    ],
)
def test_options_that_cannot_be(options, words, told):
    assert words in told(*options, code=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "slurm"], "not inside an allocation of Slurm"),
        (["--engine", "slurm", "--hosts", "a"], "Slurm chooses the nodes"),
        (["--engine", "kubernetes", "--image", "x"], "add --dry-run"),
    ],
)
def test_runs_that_cannot_be(options, words, told):
    assert words in told(*options, dry=False, code=2)
