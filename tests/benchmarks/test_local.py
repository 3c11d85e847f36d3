"""The local benchmark: its cases run on our library, and the command shows what it measured."""

import importlib.util
import json

import pytest
import telegrad as tg
from telegrad.benchmarks import local, sweep
from telegrad.benchmarks.local_cases import CASES, measure
from telegrad.benchmarks.results import Results, Row
from telegrad.benchmarks.sweep_cases.all import CASES as OPERATIONS


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_runs_step_after_step(case):
    step = case.build(tg)
    step()
    step()


def test_measuring_takes_three_steps_at_least_and_believes_steps_that_measure_themselves():
    count = []
    assert measure(lambda: count.append(1), 0.0) > 0 and len(count) == 3
    assert measure(lambda: 42.0, 0.0) == 42.0


@pytest.mark.processes
def test_ours_alone(tmp_path, capsys):
    file = tmp_path / "figures.json"
    arguments = ["--ours-only", "--rounds", "2", "--seconds", "0.01", "--only", "41", "--json", str(file)]
    assert local.main(arguments) == 0
    (measured,) = json.loads(file.read_text())["measurements"]
    assert len(measured["rounds"]) == 2 and measured["case"] == CASES[0].name and not measured["error"]
    assert "41 operations" in capsys.readouterr().out


@pytest.mark.processes
@pytest.mark.skipif(bool(importlib.util.find_spec("torch")), reason="torch is here, so it would be measured")
def test_without_a_peer_it_says_how_to_name_one(capsys):
    assert local.main(["--rounds", "1", "--seconds", "0.01", "--only", "41"]) == 0
    assert "--peer torch=PYTHON" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--only", "nothing like it"]])
def test_what_makes_no_sense_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        local.main(arguments)
    assert "at least 1" in (error := capsys.readouterr().err) or "there are: 41 operations" in error


@pytest.mark.parametrize("case", OPERATIONS, ids=lambda case: case.name)
def test_an_operation_of_the_sweep_runs(case):
    case.build(tg)()


def test_cases_have_names_of_their_own():
    names = [case.name for case in (*CASES, *OPERATIONS)]
    assert len(set(names)) == len(names) and len(OPERATIONS) >= 150


@pytest.mark.processes
@pytest.mark.slow
def test_the_sweep_orders_operations_by_their_ratio():
    arguments = ["--rounds", "1", "--seconds", "0.001", "--only", "linalg.q", "--ours-only"]
    assert sweep.main(arguments) == 0
    results = Results(rows=[Row(name, name, "p50") for name in ("a", "b")])
    for name, ours in (("a", 1.0), ("b", 3.0)):
        results.record(name, "telegrad").rounds.append({"p50": ours})
        results.record(name, "torch").rounds.append({"p50": 2.0})
    assert list(sweep.ratios_of(results).items()) == [("b", 1.5), ("a", 0.5)]
