"""Every lane passes the one conformance suite."""

import pytest
from telegrad.rpc.extend import InProcessLane, InProcessNetwork
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing.check_lane import CHECKS


def in_process():
    network = InProcessNetwork()
    return lambda: InProcessLane(network)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("lane", [in_process, lambda: GrpcLane], ids=["inproc", "grpc"])
def test_lane(lane, check):
    check(lane())
