"""Options of ``torchrun`` given to ``telegrad run``."""

import os

import pytest
from telegrad.launcher.cli import app
from typer.testing import CliRunner


@pytest.fixture
def told(tmp_path, monkeypatch):
    """``told(*options)`` is what ``telegrad run --dry-run`` prints, or why it refuses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TELEGRAD_TOKEN", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    (tmp_path / "train.py").touch()

    def run(*options, code=0):
        result = CliRunner().invoke(app, ["run", "--dry-run", *options, "train.py", "--batch_size", "3"])
        assert result.exit_code == code, result.output
        return result.output

    return run


@pytest.mark.parametrize("options", [["--nproc_per_node=2"], ["--nproc_per_node", "2"], ["-n", "2", "--no_preload"]])
def test_underscores_are_hyphens_in_options_and_stay_in_arguments(told, options):
    first, *workers = told(*options).splitlines()
    assert first.startswith("2 workers on this machine")
    assert all(worker.endswith("train.py --batch_size 3") for worker in workers)


@pytest.mark.parametrize("count", ["auto", "cpu", "gpu"])
def test_a_worker_for_each_core(told, count):
    output = told("--nproc-per-node", count)
    assert "3 workers on this machine" in output
    assert ("Telegrad computes on the CPU" in output) is (count == "gpu")


@pytest.mark.parametrize(
    ("options", "ignored"),
    [
        (["--standalone"], ""),
        (["--standalone", "--nnodes=1", "--rdzv-endpoint=localhost:0"], "--rdzv-endpoint has"),
        (["--nnodes=1:1", "--rdzv_endpoint=localhost:29400"], "--rdzv-endpoint has"),
        (["--nnodes=1", "--node_rank=0", "--master_addr=127.0.0.1"], "--master-addr, --node-rank have"),
        (["--nnodes=1", "--local-addr=127.0.0.1"], "--host has"),
        (["--master_port", "29501"], "--master-port has"),
    ],
)
def test_one_machine_needs_no_rendezvous(told, options, ignored):
    output = told(*options)
    assert "1 worker on this machine" in output
    assert ("no effect" in output) is bool(ignored)
    assert not ignored or f"telegrad: {ignored} no effect: on one machine" in output


def test_the_address_of_the_master_is_the_rendezvous_of_several_machines(told):
    several = ["--nnodes=2", "--node_rank=1"]
    assert "machine 1 of 2: 1 worker; rendezvous of the launchers at a:29500" in told(*several, "--master-addr", "a")
    output = told(*several, "--master_addr=::1", "--master_port=9", "--local_addr=127.0.0.1")
    assert "at ::1:9" in output and "no effect" not in output
    output = told(*several, "--rdzv-endpoint=b:8", "--master_port=9")
    assert "at b:8" in output and "--master-port has no effect: --rdzv-endpoint says where machine 0 is" in output


def test_a_machine_with_a_token_joins_its_rendezvous_also_alone(told, monkeypatch):
    monkeypatch.setenv("TELEGRAD_TOKEN", "x")
    assert "machine 0 of 1" in told("--nnodes=1", "--node-rank=0", "--rdzv-endpoint=localhost:29400")


def test_a_role_names_the_workers_and_a_shutdown_timeout_is_the_grace(told):
    assert "trainer1: " in told("--role=trainer", "-n2", "--shutdown_timeout=5")


@pytest.mark.parametrize(
    "option",
    [
        *("--monitor-interval=5", "--start-method=fork", "--run-path", "--rdzv-id=7"),
        *("--rdzv-backend=c10d", "--rdzv_conf=timeout=3", "-t 3", "--tee=3", "-r 3", "--redirects=0:1"),
        *("--local-ranks-filter=0", "--logs-specs=x", "--event-log-handler=null", "--numa-binding=node"),
        *("--signals-to-handle=SIGUSR1", "--virtual-local-rank", "--duplicate_stdout_filters=a"),
        "--duplicate_stderr_filters=b",
    ],
)
def test_options_without_an_effect_are_accepted_and_say_so(told, option):
    output = told(*option.split())
    assert "1 worker on this machine" in output and output.count("has no effect: ") == 1


def test_an_option_that_is_its_default_says_nothing(told):
    assert "no effect" not in told("--max_restarts=0")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--standalone", "--nnodes=2"], "--standalone and --nnodes 2 disagree"),
        (["--nnodes=1", "--node-rank=1"], "--node-rank 1 is not on a job's only machine"),
        (["--standalone", "--engine=mpi"], "not for --engine, which knows the machines"),
        (["--master-port=9", "--engine=slurm"], "not for --engine, which knows the machines"),
        (["--nproc_per_node=x"], "-n takes a whole number of workers, you gave 'x'"),
        (["--nproc_pernode=2"], "--nproc-per-node"),
    ],
)
def test_options_that_cannot_be(told, options, words):
    assert words in told(*options, code=2)


def test_a_job_file_takes_every_name_of_an_option(told, tmp_path):
    (tmp_path / "job.toml").write_text('nproc_per_node = "auto"\nrole = "trainer"\ntee = "3"\n')
    output = told("--job", "job.toml")
    assert "trainer2: " in output and "--tee has no effect" in output
