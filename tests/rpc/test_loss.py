"""Workers that die, leave or freeze: all who wait for them are told at once and by name, and everything else goes on."""

import signal

import pytest

pytestmark = pytest.mark.processes

WAITERS = ("backward", "call", "call without a time-out", "to_here", "through w1", "later call", "later to_here")


@pytest.mark.parametrize(("how", "code"), [("kill", -signal.SIGKILL), ("exit", 3), ("leave", None), ("stop", None)])
def test_everybody_who_waits_for_a_lost_worker_is_told(forked_job, how, code):
    running = forked_job("loss", 3, [how])
    running.read_until(0, "over")
    running.read_until(1, "over")
    for waiter in WAITERS:
        assert f"lost {waiter}" in running.output(0), running.outputs()
    assert "Traceback" not in running.output(0), running.outputs()
    if code is None:
        running.processes[2].kill()
    running.wait(codes=[0, 0, code or -signal.SIGKILL])


@pytest.mark.parametrize(
    ("scenario", "count"),
    [
        ("in_turn", 2),
        ("under_way", 3),
        ("chain", 2),
        ("time_out", 3),
        ("twice", 2),
        ("again", 2),
        ("forgotten", 2),
        ("never_met", 2),
        ("ungraceful", 2),
        ("never_answers", 2),
        ("in_handler", 2),
    ],
)
def test_endings(forked_job, scenario, count):
    running = forked_job("ending", count, [scenario])
    running.wait()
    for rank in range(count):
        assert ("over" in running.output(rank)) or (scenario == "time_out" and rank == 1)
        assert "Traceback" not in running.output(rank), running.outputs()


@pytest.mark.parametrize("how", ["graceful", "at once", ""])
def test_finalizers_at_the_end_say_nothing(job, how):
    """Objects in cycles, module globals, classes and thread locals when the interpreter ends, with a dead peer."""
    running = job("exiting", 2, [how])
    running.wait(codes=[0, -signal.SIGKILL])
    words = running.output(0).splitlines()
    first, *rest = [line for line in words if "waits for the others" not in line]  # it may, on a loaded machine
    assert first.startswith("worker 'w1' (rank 1) is lost") and rest == ["over"], running.outputs()
