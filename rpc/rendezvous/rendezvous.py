"""``Rendezvous``: the interface of the ways in which workers find one another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..lanes.lane import Lane
    from ..security.handshake import Credentials
    from .group_log import GroupLog
    from .tcp import Admit


class Rendezvous(ABC):
    """Way in which workers find one another.

    Attributes:
        address: "host:port" at which rank 0 listens for the others; empty unless it is over TCP.
        log: log that keeps the members of a dynamic group, once this worker has joined; ``None`` where rank 0 keeps them.
        absent: the last workers of the places that had none when this worker joined.
    """

    address: str = ""
    log: GroupLog | None = None
    absent: Sequence[WorkerRecord] = ()

    @abstractmethod
    def prepare(self, lanes: list[Lane], rank: int, host: str | None, secured: bool) -> str | None:
        """Return the address at which the agent must listen, "host:port"; called before it does.

        Args:
            lanes: the agent's lanes.
            rank: the agent's rank.
            host: name or address at which others reach the agent; ``None`` if its user gave none.
            secured: the agent has TLS, or its user has written ``insecure=True``.

        Returns:
            The address; ``None`` for any port of the loopback.

        Raises:
            RendezvousError: the rendezvous is on a network, and the agent is not secured.
        """

    @abstractmethod
    def join(self, me: Credentials, world_size: int, timeout: float, keepalive: float) -> Iterable[WorkerRecord]:
        """Join, and return the records of all workers once the last one has joined.

        Args:
            me: the worker that joins.
            world_size: number of workers; 0 joins a dynamic group.
            timeout: seconds to wait for all.
            keepalive: seconds of silence after which a connection asks whether its peer is there.

        Raises:
            RendezvousError: a worker did not join in time, or two contradict each other.
        """

    def open_group(self, admit: Admit) -> None:
        """Let workers join the dynamic group at this worker: each gets the records that ``admit`` returns."""
        raise NotImplementedError(f"no dynamic group comes together by {type(self).__name__}")
