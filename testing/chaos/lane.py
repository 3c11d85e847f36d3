"""Lane of a worker in a chaos job: it listens at a given port, and dials each peer through a relay."""

from __future__ import annotations

from collections.abc import Mapping

from ...launcher.environment import LOOPBACK_ADDRESS
from ...proto.rpc_pb2 import WorkerRecord
from ...rpc.extend import LaneListener, register_lane
from ...rpc.lanes.grpc import GrpcLane


class RelayedLane(GrpcLane):
    """gRPC lane whose sessions go through relays; identities and announced addresses stay those of the peers."""

    def __init__(self, port: int, relays: Mapping[int, int]) -> None:
        super().__init__()
        self._port = port
        self._relays = relays

    def listen(self, listener: LaneListener, address: str | None) -> str:
        return super().listen(listener, address or f"{LOOPBACK_ADDRESS}:{self._port}")

    def target(self, peer: WorkerRecord, address: str) -> str:
        return f"{LOOPBACK_ADDRESS}:{self._relays[peer.rank]}"


def use_relays(port: int, relays: Mapping[int, int]) -> None:
    """Make ``init_rpc`` in this process listen at ``port`` and dial peers, by rank, at the ports of their relays."""
    register_lane("grpc", lambda: RelayedLane(port, relays))
