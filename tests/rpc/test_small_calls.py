"""Guard of the costs of a small call: Python calls, writes, allocations and sleeps, which do not depend on the machine.

A hand-over between threads, a lock more or a second write would be seen here. The bounds are a little above what was
counted; over gRPC a no-op takes some 21 sleeps, here none, and one at each end where other programs use the cores.
"""

import json

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.slow]

BOUNDS = {
    "no-op": {"python calls": 64, "writes": 1, "locks made": 1, "blocks": 0.5, "sleeps": 3},
    "1 KiB echo": {"python calls": 76, "writes": 1, "locks made": 1, "blocks": 0.5, "sleeps": 3},
}


def test_a_small_call_costs_no_more_than_it_did(job):
    running = job("small_calls", 2)
    running.wait()
    *lines, lane = [line for line in running.output(0).splitlines() if line.strip()]
    assert lane == "unix"
    counted = {name: costs for line in lines for name, costs in json.loads(line).items()}
    assert counted.keys() == BOUNDS.keys()
    for name, bounds in BOUNDS.items():
        over = {what: counted[name][what] for what, bound in bounds.items() if counted[name][what] > bound}
        assert not over, (name, over, bounds)
    assert counted["no-op"]["writes"] == 1
