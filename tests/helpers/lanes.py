"""Makers of lanes for the conformance suite, by the name of what carries their frames."""

from functools import partial

from telegrad.rpc.extend import InProcessLane, InProcessNetwork
from telegrad.rpc.lanes.grpc import GrpcLane

from .certificates import authority, worker_tls


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
