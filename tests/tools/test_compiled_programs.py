"""Random programs, eagerly and compiled: the check passes, replays most of them, and finds results that are wrong."""

import pytest
from telegrad.capture import memory
from telegrad.tools.compiled_programs import __main__ as command
from telegrad.tools.compiled_programs.program import check
from telegrad.tools.compiled_programs.written import check_written


def test_programs_give_the_same_bits():
    outcomes = [check(seed) for seed in range(12)]
    assert not [each for each in outcomes if each.problem]
    assert sum(each.replays > 0 for each in outcomes) > 8
    assert check(3) == outcomes[3]


def test_programs_that_look_at_elements_give_the_same_bits():
    outcomes = [check(seed, branches=True) for seed in range(8)]
    assert not [each for each in outcomes if each.problem]
    assert sum(each.replays > 0 for each in outcomes) > 4


def test_programs_of_random_statements_give_the_same_bits():
    outcomes = [check_written(seed) for seed in range(8)]
    assert not [each for each in outcomes if each.problem]
    assert sum(each.replays > 0 for each in outcomes) > 2


def test_memory_that_is_given_away_too_early_is_found(monkeypatch):
    real = memory.last_uses
    monkeypatch.setattr(memory, "last_uses", lambda *given: {key: use - 2 for key, use in real(*given).items()})
    assert any(check(seed).problem for seed in range(10))


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--tiny"], ["--branches", "--tiny"], ["--texts"]])
def test_the_command(options, capsys):
    assert command.main(["--seeds", "25", "--first", "1000", *options]) == 0
    assert "25 programs" in capsys.readouterr().out


@pytest.mark.soak
def test_many_programs():
    assert not [seed for seed in range(10_000, 13_000) if check(seed, branches=seed % 2 == 1).problem]
    assert not [seed for seed in range(10_000, 13_000) if check_written(seed).problem]
