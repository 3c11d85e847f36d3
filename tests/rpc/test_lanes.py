"""Every lane passes the one conformance suite."""

from functools import partial

import pytest
from helpers.certificates import authority, worker_tls
from telegrad.rpc.extend import InProcessLane, InProcessNetwork
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing.check_lane import CHECKS


def in_process(folder):
    network = InProcessNetwork()
    return lambda: InProcessLane(network)


def grpc(folder):
    return GrpcLane


def unix(folder):
    return partial(GrpcLane, ["unix"])


def tcp(folder):
    return partial(GrpcLane, ["tcp"])


def grpc_tls(folder, sockets=()):
    jobs = authority()

    def secure(listener):
        if listener.tls is None:
            listener.tls = worker_tls(folder / listener.record.name, jobs, listener.record.name)
            listener.record.certificate_name = listener.tls.names[0]

    class SecuredLane(GrpcLane):
        def __init__(self):
            super().__init__(sockets)

        def listen(self, listener, address):
            secure(listener)
            return super().listen(listener, address)

        def dial(self, listener, peer, address):
            secure(listener)
            return super().dial(listener, peer, address)

    return SecuredLane


def tcp_tls(folder):
    return grpc_tls(folder, ["tcp"])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("lane", [in_process, grpc, grpc_tls, unix, tcp, tcp_tls])
def test_lane(lane, check, tmp_path):
    check(lane(tmp_path))
