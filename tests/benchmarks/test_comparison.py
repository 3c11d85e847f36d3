"""Comparison of three programs in six libraries: lines, ratios, and what a caller sees of a worker that dies."""

import sys

import pytest
from telegrad.benchmarks import comparison
from telegrad.benchmarks.comparison import LIBRARIES, WORKERS, Ran


def test_each_library_has_each_program():
    files = {path.name for program in WORKERS for path in comparison.FOLDER.glob(f"{program}_*.py")}
    assert files == {f"{program}_{library}.py" for program in WORKERS for library in LIBRARIES}
    lines = [comparison.count_lines(program, library) for program in WORKERS for library in LIBRARIES]
    assert min(lines) > 10 and max(lines) < 60


def test_ratios_are_of_one_round(monkeypatch):
    times = iter([1e-3, 2e-3, 4e-3, 16e-3, 1e-3, 3e-3])  # of three rounds: 2, 4 and 3 times as long

    def run(program, name, python):
        return Ran({"result": 5, "seconds": next(times)}, 0)

    monkeypatch.setattr(comparison, "run", run)
    monkeypatch.setattr(comparison, "TIMED", {"call": "a call"})
    *_, ours, torch = comparison.timed_table(dict.fromkeys(LIBRARIES, "python"), ["telegrad", "torch"], 3)
    assert [cell.strip() for cell in ours.split("|")][1:5:2] == ["Telegrad", "1.0"]
    assert [cell.strip() for cell in torch.split("|")][1:5] == [
        "PyTorch RPC",
        torch.split("|")[2].strip(),
        "3.0",
        "2000 µs",
    ]


def test_a_library_whose_caller_sees_nothing_is_shown(monkeypatch):
    said = {"telegrad": Ran({"error": "WorkerLostError: gone", "seconds": 0.2, "others": 7}, 0), "mpi4py": Ran({}, 9)}
    monkeypatch.setattr(comparison, "run", lambda program, name, python: said[name])
    rows = list(comparison.death_table(dict.fromkeys(said, "python"), list(said)))
    assert "`WorkerLostError: gone` | 0.2 s | yes" in rows[-2]
    assert "nothing: the job ends with code 9" in rows[-1]


@pytest.mark.processes
@pytest.mark.long
@pytest.mark.parametrize("program", WORKERS)
def test_ours_run(program):
    ran = comparison.run(program, "telegrad", sys.executable)
    assert ran.code == 0
    assert ran.said.get("result", 5) in (1.0, 5)
    assert ran.said.get("others", 7) == 7
