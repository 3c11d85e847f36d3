"""Specs of jobs and the command line: errors before anything starts, and the jobs that arguments describe."""

import os
import resource
import socket
import sys
from pathlib import Path

import pytest
from telegrad.launcher import JobResult, JobSpec, cli, run_command
from telegrad.launcher.environment import reserve_port
from telegrad.launcher.spec import numbered, parse_count, parse_roles
from typer.testing import CliRunner


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    Path("package").mkdir()
    return tmp_path


@pytest.fixture
def telegrad(monkeypatch):
    """Return a function that runs the command without workers: its exit code, its output, and the specs of the jobs."""
    jobs = []

    def launch(spec, node=None, tell=None):
        jobs.append(spec)
        return JobResult(0, None, None, (), Path("logs"), 0.0, ())

    monkeypatch.setattr(run_command, "launch", launch)

    def run(*arguments):
        result = CliRunner().invoke(cli.app, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.output, list(jobs)

    return run


def test_options_stand_before_the_script_and_the_rest_is_its_own(telegrad):
    code, _, (spec,) = telegrad("run", "-n", "2", "--grace", "1.5", "train.py", "-n", "9", "--", "--grace", "x")
    assert code == 0
    assert spec == JobSpec("train.py", ("-n", "9", "--", "--grace", "x"), ("worker0", "worker1"), grace=1.5)
    assert spec.command == [sys.executable, "train.py", "-n", "9", "--", "--grace", "x"] and spec.title == "train"


def test_a_module_is_run_as_one(telegrad):
    *_, (spec,) = telegrad("run", "--name", "w", "--log-dir", "here", "-m", "telegrad.examples", "--help")
    assert spec == JobSpec("telegrad.examples", ("--help",), ("w0",), module=True, log_dir=Path("here"))
    assert spec.command == [sys.executable, "-m", "telegrad.examples", "--help"] and spec.title == "examples"


def test_the_demo_is_a_job_like_any_other_and_hands_its_options_on(telegrad):
    *_, (spec,) = telegrad("demo", "--out", "here", "extra")
    workers = ("ps", "trainer0", "trainer1")
    assert spec == JobSpec("telegrad.examples.parameter_server", ("--out", "here", "extra"), workers, module=True)


def test_the_version_is_the_installed_one(telegrad):
    from importlib.metadata import version

    assert telegrad("--version")[:2] == (0, f"telegrad {version('telegrad')}\n")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["-n", "0", "train.py"], "-n 0 starts no worker"),
        (["-n", "-3", "train.py"], "-n -3 starts no worker"),
        (["-n", "four", "train.py"], "-n takes a whole number of workers, you gave 'four'"),
        (["-n", "2.5", "train.py"], "-n takes a whole number of workers, you gave '2.5'"),
        (["trian.py"], "there is no script 'trian.py' in "),
        (["trian"], "or write -m trian if it is a module"),
        (["package"], "'package' is a directory and not a script"),
        (["--python", "/nowhere/python", "train.py"], "there is no interpreter '/nowhere/python'"),
        (["--python", "train.py", "train.py"], "there is no interpreter 'train.py' that you may execute"),
        (["--grace", "-1", "train.py"], "the grace must be a number of seconds from 0 to 1728000, you gave -1.0"),
        (["--grace", "nan", "train.py"], "the grace must be"),
        (["--grace", "inf", "train.py"], "the grace must be"),
        (["--grace", "1e300", "train.py"], "the grace must be"),
        (
            ["-n", "1000000000000", "train.py"],
            "-n 1000000000000 is too many: a job on one machine has at most 4096 workers",
        ),
        (["-n", "9" * 5000, "train.py"], "-n takes a whole number of workers, you gave '99999"),
        (["--roles", "ps,trainer=1000000000000", "train.py"], "--roles: 1000000000001 is too many"),
        (["--roles", f"ps,trainer={'9' * 5000}", "train.py"], "is too many"),
        (["-m", "no_such_module_anywhere.x"], "there is no module 'no_such_module_anywhere'"),
        (["-m", "train.py"], "'train.py' is a path: leave -m out"),
        (["-m", ".x"], "you gave '.x'"),
        (["--name", "a/b", "train.py"], "'a/b0' cannot be a worker's name"),
        (["--roles", "ps,ps", "train.py"], "2 workers have the name 'ps'"),
        (["--roles", "ps=0", "train.py"], "cannot read the role 'ps=0'"),
        (["--roles", "ps,,x", "train.py"], "cannot read the role ''"),
        (["--roles", "ps,x=2", "-n", "2", "train.py"], "the roles make 3 workers: leave -n out"),
    ],
)
def test_bad_input_is_refused_in_one_paragraph(telegrad, arguments, said):
    code, output, jobs = telegrad("run", *arguments)
    assert code == 2 and jobs == []
    assert output.startswith("telegrad: ") and said in output and output.count("\n") == 1
    assert "Traceback" not in output


@pytest.mark.parametrize("arguments", [["run", "-n", "2"], ["run", "--bogus", "train.py"], ["bogus"]])
def test_a_command_line_that_makes_no_sense_is_refused(telegrad, arguments):
    code, output, jobs = telegrad(*arguments)
    assert code == 2 and jobs == [] and "Error" in output


def test_more_workers_than_files_for_them_are_refused(telegrad, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 1024))
    code, output, jobs = telegrad("run", "-n", "1000", "train.py")
    assert code == 2 and jobs == []
    assert output.startswith("telegrad: -n 1000 needs 4064 open files, and this process may have 1024: start fewer")


def test_a_script_that_may_not_be_read_is_refused(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)  # permissions do not bind root
    with pytest.raises(PermissionError, match=r"you may not read the script 'train.py'"):
        JobSpec("train.py")


def test_a_directory_with_a_main_is_a_script():
    Path("package", "__main__.py").write_text("")
    assert JobSpec("package").command[-1] == "package"


def test_a_module_of_another_interpreter_is_not_judged(folder):
    python = folder / "python"
    python.write_text("")
    python.chmod(0o755)
    assert JobSpec("no_such_module_anywhere", module=True, interpreter=str(python)).command[0] == str(python)


def test_a_job_without_workers_is_refused():
    with pytest.raises(ValueError, match="at least one worker"):
        JobSpec("train.py", workers=())


def test_names_counts_and_roles():
    assert numbered("w", 3) == ("w0", "w1", "w2")
    assert parse_count("12") == 12
    assert parse_roles("ps, trainer=2 ,eval=1") == ("ps", "trainer0", "trainer1", "eval0")


@pytest.mark.parametrize("log_dir", ["train.py", "train.py/logs"])
def test_logs_that_have_no_place_are_refused(log_dir):
    result = CliRunner().invoke(cli.app, ["run", "--log-dir", log_dir, "train.py"])
    assert result.exit_code == 2
    assert result.output.startswith(f"telegrad: the folder '{log_dir}' for the logs cannot be made: ")
    assert "--log-dir" in result.output


def test_a_log_that_cannot_be_written_is_refused():
    Path("logs", "worker0.log").mkdir(parents=True)
    result = CliRunner().invoke(cli.app, ["run", "--log-dir", "logs", "train.py"])
    assert result.exit_code == 2 and "the log 'logs/worker0.log' cannot be written: Is a directory" in result.output


def test_a_reserved_port_is_free_for_a_listener_and_for_nobody_else():
    with reserve_port() as reserved, reserve_port() as another:
        assert reserved.getsockname() != another.getsockname()
        address = reserved.getsockname()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(address)
        with socket.create_server(address) as server, socket.create_connection(address):
            server.accept()[0].close()
