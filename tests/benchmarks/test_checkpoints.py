"""The benchmark of checkpoints saves, restores and finds damage, and says so."""

import re

import pytest
from telegrad.benchmarks import checkpoints


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(checkpoints, "_WARM", 1)
    monkeypatch.setattr(checkpoints, "_STEPS", 1)


def test_it_prints_pauses_times_and_what_was_found(capsys):
    assert checkpoints.main(["--mib", "3", "--damage", "6"]) == 0
    shown = capsys.readouterr().out
    pauses = re.findall(
        r"save_async: (the first|a later) one pauses training by -?\d+ ms, and the step .* \d+ ms\n", shown
    )
    assert pauses == ["the first", "a later"]
    assert "the bits are equal" in shown
    assert "damage at 6 random bytes: found 6 times\n" in shown


def test_damage_that_is_not_seen_is_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(checkpoints, "verify", lambda folder: {"00000001-step-1": None})
    assert checkpoints.main(["--mib", "3", "--damage", "2"]) == 1
    assert "damage at 2 random bytes: found 0 times" in capsys.readouterr().out
