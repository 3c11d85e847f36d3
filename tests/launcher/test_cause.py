"""Both launchers name the worker that failed, not one that lost it; ``programs/root_cause.py`` counts over many runs."""

import pytest
import root_cause
from helpers.programs import ending_within
from telegrad.launcher import supervisor

pytestmark = pytest.mark.processes


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """``judge(launcher, case, how)`` runs a job that fails; the test fails if the verdict is wrong."""
    monkeypatch.delenv("TELEGRAD_WORKER", raising=False)
    monkeypatch.chdir(tmp_path)

    def judge(launcher, case, how="raise", size=3):
        assert not root_cause.LAUNCHERS[launcher](size, case, how)

    with ending_within(150):
        yield judge


@pytest.mark.parametrize(
    "launcher, case",
    [
        *(("run", case) for case in ("serving", "pending", "polling", "short")),
        ("spawn", "serving"),
        ("spawn", "polling"),
    ],
)
def test_the_worker_that_raises_is_the_cause(judge, launcher, case):
    judge(launcher, case)


@pytest.mark.parametrize("launcher", ["run", "spawn"])
def test_also_at_the_end_of_a_chain_of_calls(judge, launcher):
    judge(launcher, "chain", size=4)


@pytest.mark.parametrize("how", ["hook", "leave", "exit", "os._exit", "kill", "crash", "forgotten"])
def test_however_it_ends(judge, how):
    judge("run", "pending", how)


@pytest.mark.parametrize("how", ["leave", "exit", "kill"])
def test_however_a_spawned_one_ends(judge, how):
    judge("spawn", "pending", how)


@pytest.mark.parametrize("launcher", ["run", "spawn"])
def test_a_worker_that_raises_and_does_not_end_is_ended(judge, monkeypatch, launcher):
    monkeypatch.setattr(supervisor, "SETTLE_SECONDS", 0.5)
    judge(launcher, "pending", "thread")
