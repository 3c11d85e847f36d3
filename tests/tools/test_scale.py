"""Steps of a message of a barrier and of a shutdown: as many among many workers as among few."""

import re

import pytest
from telegrad.rpc.group import quiescence as q
from telegrad.rpc.group.gathering import Contribution, Rounds
from telegrad.rpc.group.quiescence_messages import Counts, Ready
from telegrad.testing.counts import lines_run
from telegrad.tools.scale import lines, measure


def lines_of(action):
    with lines_run() as count:
        action()
        return count()


def offer_to(workers):
    rounds = Rounds([f"w{rank}" for rank in range(workers)])
    return lines_of(lambda: rounds.offer("w1", Contribution(0, None)))


def ready_at(workers):
    machine = q.Quiescence(0, range(workers))
    machine.handle(q.ShutdownCalled(lambda: Counts({}, 0)))
    return lines_of(lambda: machine.handle(q.Received(1, Ready())))


@pytest.mark.parametrize("step", [offer_to, ready_at])
def test_a_message_takes_as_many_steps_among_many_workers(step):
    assert 0 < step(1000) == step(10)


def test_a_round_after_a_withdrawal_and_a_loss_counts_right():
    rounds = Rounds("ab")
    assert rounds.offer("a", Contribution(0, 1)) == {}
    assert rounds.withdraw("a", 0) is not None
    assert rounds.offer("b", Contribution(0, 2)) == {} == rounds.offer("b", Contribution(1, 3))
    full = rounds.offer("a", Contribution(1, 4))
    assert {name: offer.value for name, offer in full.items()} == {"a": 4, "b": 2}
    assert [offer.value for offer in rounds.end()] == [3]
    assert rounds.offer("a", Contribution(2, 5)) == {}


def test_an_event_runs_as_many_lines_among_many_workers():
    """Also the start of a worker, which is one event of its phase; a look at each other worker would be 150 lines more."""
    for few, many in zip(lines(50), lines(200), strict=True):
        assert few.phase == many.phase and 0 < many.of_event < 1.02 * few.of_event, (few, many)


def test_every_phase_of_a_job_is_measured():
    costs = measure(5)
    assert [cost.phase for cost in costs] == ["rendezvous", "start", "calls", "barrier", "shutdown"]
    assert all(cost.events >= 5 for cost in costs)


def test_the_picture_writes_numbers_out(run_python, tmp_path):
    pytest.importorskip("matplotlib")
    run_python("-m", "telegrad.tools.scale", 14, 20, "--picture", tmp_path / "scale.svg")
    labels = re.findall("<!-- (.*) -->", (tmp_path / "scale.svg").read_text())
    assert {"14", "20"} <= set(labels) and not any("times" in label or "^" in label for label in labels), labels
