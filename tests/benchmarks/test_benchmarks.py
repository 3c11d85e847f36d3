"""The command measures, shows what failed, and names who is left out."""

import json
import runpy
import sys

import pytest
from helpers.launched import NEEDS_MPI
from telegrad.benchmarks import environments, rpc
from telegrad.benchmarks.cases import Turn
from telegrad.benchmarks.cases.all import CASES, named
from telegrad.benchmarks.contender import combine
from telegrad.benchmarks.libraries import Place, UnsupportedError, load
from telegrad.benchmarks.turns import Run

SECONDS = 0.001
LARGE = ("echo", "workers", "burst", "threads", "server")  # too long for a test, or needs processes
GROUPS = ("all_reduce", "data parallel", "pipeline")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = load("telegrad", "inproc")
    made.join(0, 9, Place(tmp_path_factory.mktemp("job"), 0))
    yield made
    made.leave()


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.name == "1 KiB echo" or not any(word in case.name for word in (*LARGE, *GROUPS))],
    ids=lambda case: case.name,
)
def test_a_case_measures_its_rows(case, library):
    turn = Turn(library, case.workers, SECONDS, peer=1, begin=0.0, launched=0.0)
    figures = case.measure(turn)
    for row in case.rows():
        assert figures[row.figure] >= 0


@pytest.mark.parametrize("lacks", ["1 calling thread", "remote + to_here", "burst of 10,000 no-ops"])
def test_a_library_says_what_it_lacks(lacks, tmp_path):
    made = load("memcpy", "default")
    made.join(0, 2, Place(tmp_path, 0))
    with pytest.raises(UnsupportedError):
        named(lacks).measure(Turn(made, 2, SECONDS, peer=1, begin=0.0, launched=0.0))


def test_rates_of_several_callers_add_up():
    assert combine([{"figures": {"rate": 1.0, "p50": 1.0}}, {"figures": {"rate": 2.0, "p50": 5.0}}]) == {
        "figures": {"rate": 3.0, "p50": 1.0}
    }
    assert combine([{"figures": {"rate": 1.0}}, {"error": "no"}]) == {"error": "no"}


def measured(tmp_path, case, *contenders):
    """{contender: its measurement} of a run of the command."""
    file = tmp_path / "figures.json"
    arguments = ["--ours-only", "--rounds", "2", "--seconds", "0.01", "--json", str(file), "--only", case]
    for name in contenders:
        arguments += ["--contender", name]
    assert rpc.main(arguments) == 0
    return {row["contender"]: row for row in json.loads(file.read_text())["measurements"]}


@pytest.mark.processes
@pytest.mark.slow
def test_contenders_are_measured_in_turn(tmp_path, capsys):
    found = measured(tmp_path, "no-op", "telegrad", "sockets, TCP", "two memcpys")
    for name in ("telegrad", "sockets, TCP"):
        assert [list(figures) for figures in found[name]["rounds"]] == [["p50", "p99", "samples"]] * 2
    assert found["two memcpys"]["absent"]
    assert "no-op" in (output := capsys.readouterr().out) and "it only copies" in output


@pytest.mark.processes
@pytest.mark.slow
def test_four_pairs_call_at_once(tmp_path):
    assert len(measured(tmp_path, "4 pairs at once", "sockets, Unix")["sockets, Unix"]["rounds"]) == 2


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("case", ["data parallel step, 2 ranks", "pipeline step, 2 stages"])
def test_all_workers_take_part_in_a_group(tmp_path, case):
    found = measured(tmp_path, case, "telegrad", "telegrad, in process")
    assert all(figures["p50"] > 0 for figures in found["telegrad"]["rounds"])
    assert "process groups" in found["telegrad, in process"]["absent"]


@pytest.mark.processes
@pytest.mark.slow
@NEEDS_MPI
def test_an_all_reduce_of_mpi_alone(tmp_path):
    found = measured(tmp_path, "all_reduce of 1 KiB, 2 ranks", "telegrad", "MPI")
    assert all(figures["p50"] > 0 for name in found for figures in found[name]["rounds"])


@pytest.mark.processes
@pytest.mark.long
def test_a_parameter_server_trains(tmp_path):
    assert len(measured(tmp_path, "parameter server", "telegrad")["telegrad"]["rounds"]) == 2


@pytest.mark.processes
@pytest.mark.slow
def test_a_job_of_its_own_has_a_start_and_memory(tmp_path):
    file = tmp_path / "figures.json"
    arguments = ["--ours-only", "--rounds", "1", "--contender", "telegrad", "--only", "start, 2 workers"]
    assert rpc.main([*arguments, "--json", str(file)]) == 0
    ((figures,),) = (row["rounds"] for row in json.loads(file.read_text())["measurements"])
    assert figures["start"] > 0 and figures["memory"] >= figures["own memory"] > 1 << 20


@pytest.mark.processes
def test_a_peer_that_cannot_start_is_shown(capsys):
    arguments = ["--peer", "/bin/false", "--rounds", "1", "--contender", "torch", "--only", "no-op"]
    assert rpc.main(arguments) == 0
    assert "ended by itself" in capsys.readouterr().out


def test_a_job_that_needs_more_memory_than_there_is_does_not_start(monkeypatch):
    results, (entry, *_) = rpc.Results(), rpc.CONTENDERS
    run = Run(results, {entry: "/bin/false"}, 1, SECONDS, rpc.Console(), load=None)
    results.record("start, 2 workers", entry.name).rounds.append({"own memory": 2.0**50})
    run.measure([named("start, 128 workers")])
    assert "GiB of memory" in results.find("start, 128 workers", entry.name).absent


def test_peers_are_named_or_left_out():
    assert environments.find_peers(["/a", "rpyc=/b"]) | {"torch": "/a", "rpyc": "/b"} == environments.find_peers(
        ["/a", "rpyc=/b"]
    )
    with pytest.raises(ValueError, match="pyro is no peer"):
        environments.find_peers(["pyro=/c"])


def test_environments_are_a_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["environments", "pyro"])
    with pytest.raises(SystemExit):
        runpy.run_path(environments.__file__, run_name="__main__")
    assert "there is no environment pyro" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--peer", "pyro=/c"]])
def test_wrong_options_end_the_program(arguments, capsys):
    with pytest.raises(SystemExit):
        rpc.main(arguments)
    assert "at least 1" in (error := capsys.readouterr().err) or "no peer" in error
