"""Workers that cannot reach each other for a while, in real processes: which stay, which are expelled, and forked children."""

import os
import re
import signal

import pytest

pytestmark = pytest.mark.processes
FORKS = int(os.environ.get("TELEGRAD_FORKS", "6"))


def test_a_worker_that_holds_the_interpreter_is_waited_for_when_it_is_first_dialed(job):
    running = job("parted", 3, ["first_dial_while_the_interpreter_is_held"])
    running.wait(90)
    assert "answered after" in running.output(0) and running.outputs().count("over") == 3, running.outputs()


def test_having_no_descriptors_is_no_evidence_against_others(job):
    running = job("parted", 2, ["without_descriptors"])
    running.wait(90)
    assert "exhausted" in running.output(0) and running.outputs().count("over") == 2, running.outputs()
    assert " is lost" not in running.outputs(), running.outputs()


def test_an_expelled_worker_fails_even_if_its_program_ends_normally(job):
    running = job("parted", 3, ["expelled"])
    running.wait(90, codes=[0, 0, 1])
    assert "lost worker 'w2'" in running.output(0), running.outputs()
    assert "it was expelled from its job" in running.output(2) and "over" in running.output(2), running.outputs()
    verdict = re.search(r"worker 'w2' \(rank 2\) is lost: .*", running.output(0))
    assert verdict and "says worker" in verdict[0] and "confirmed by" in verdict[0], running.outputs()


@pytest.mark.parametrize("how", ["os", "preexec", "process"])
def test_forked_children_end_normally(job, how):
    running = job("forks", 2, [how, FORKS])
    running.wait(60 + 4 * FORKS)
    assert f"{how}: 0 of {FORKS} children failed" in running.output(0), running.outputs()


def test_a_forked_child_does_not_hide_the_death_of_its_parent(job):
    running = job("parted", 2, ["orphan"])
    try:
        running.read_until(1, "lost after", 60)
        running.wait(codes=[-signal.SIGKILL, 0])
    finally:
        if child := re.search(r"child (\d+)", running.output(0)):
            os.kill(int(child[1]), signal.SIGKILL)
