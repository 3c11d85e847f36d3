"""Mutated checkpoints: they are the same in each run, loads of them are refused in one way, and a wrong load is found."""

import pytest
from telegrad.core.serialization import CheckpointError, load
from telegrad.tools.checkpoints import __main__ as command
from telegrad.tools.checkpoints import reading
from telegrad.tools.checkpoints.mutation import Mutations
from telegrad.tools.checkpoints.originals import originals


@pytest.fixture(scope="module")
def mutations():
    return Mutations()


def test_originals_are_valid(tmp_path):
    for form in originals():
        for content in form:
            (tmp_path / "file").write_bytes(content)
            load(tmp_path / "file")


def test_a_number_is_always_the_same_file(mutations):
    again = Mutations()
    assert all(mutations.make(number) == again.make(number) for number in range(10))
    assert len({mutations.make(number) for number in range(10)}) == 10


@pytest.mark.slow
def test_mutated_files_only_bring_errors_of_checkpoints(mutations, tmp_path):
    readings = [reading.read(number, mutations, tmp_path / "file") for number in range(200)]
    assert [problem for each in readings if (problem := each.problem(measured=False))] == []
    assert {each.error for each in readings} == {"none", CheckpointError.__name__}


@pytest.mark.soak
def test_many_mutated_files_take_little_time_and_memory(capsys):
    assert command.main(["--files", "5000", "--first", "100000"]) == 0, capsys.readouterr().out


def test_what_is_wrong_is_found(monkeypatch, capsys):
    def fail(path):
        raise NotImplementedError("of another kind")

    monkeypatch.setattr(reading, "load", fail)
    assert command.main(["--files", "2"]) == 1
    assert "file 1: NotImplementedError: of another kind" in capsys.readouterr().out
    good = reading.Reading(0, 10, "none", "", 0.5, 1 << 20)
    assert good.problem() is None
    assert "took 2.0 s" in good._replace(seconds=2.0).problem()
    assert "took 64 MiB" in good._replace(memory=64 << 20).problem()
    assert good._replace(memory=64 << 20).problem(measured=False) is None
