"""Lanes that leave a host pass the conformance suite between three hosts (network namespaces), each way round."""

import sys

import pytest
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import ended
from helpers.programs import PROGRAMS
from telegrad.testing.check_lane import CHECKS

pytestmark = [pytest.mark.processes, pytest.mark.slow, NEEDS_ROOT]


def test_lanes_between_three_hosts(tmp_path):
    with made_hosts(tmp_path, 3) as hosts:
        running = []
        for host in range(3):
            other = (host + 1) % 3
            program = [sys.executable, PROGRAMS / "lanes_between_hosts.py", tmp_path / f"certificates{host}"]
            where = [hosts.names[host], hosts.names[other], f"10.77.0.{other + 1}"]
            running.append(hosts.run(host, [*program, *where], PYTHONPATH=str(PROGRAMS.parent)))
        for process in running:
            out, err = ended(process, 0)
            assert out.count("passed ") == 4 * len(CHECKS) and not err, out + err
