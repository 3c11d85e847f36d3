"""Options of a job on several nodes, as the command line gives them. A job on one machine reads no more of this package."""

import re
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PORT = 29400  # torchrun's
NODES_TIMEOUT = 300.0
DEFAULT_JOIN_SECONDS = 10.0
LISTEN_SECONDS = 600.0  # of ``telegrad doctor --listen``
MOST_NODES = 4096

NODE_OPTIONS = {
    "rank": "--node-rank",
    "token_file": "--token-file",
    "own_host": "--host",
    "listen_host": "--listen-host",
    "timeout": "--rdzv-timeout",
    "join_seconds": "--join-seconds",
}
"""Options of a job on several machines, by their names in ``NodeOptions``."""


@dataclass(frozen=True)
class NodeOptions:
    """Options of ``telegrad run`` for a job on several nodes.

    Attributes:
        nodes: the fewest and the most nodes.
        rank: number of this node; None takes the next, and the node that has the address of the rendezvous is its host.
        host: host of the rendezvous, which is node 0's.
        port: its port.
        token_file: file with the token; None takes the environment's.
        own_host: where others reach this node; None takes the address from which it reaches the rendezvous.
        listen_host: address to listen at, where that is another one; None for the same.
        timeout: seconds in which the nodes must have come.
        join_seconds: time without a further node after which a job begins with fewer than the most.
    """

    nodes: tuple[int, int]
    host: str
    port: int
    rank: int | None = None
    token_file: Path | None = None
    own_host: str | None = None
    listen_host: str | None = None
    timeout: float = NODES_TIMEOUT
    join_seconds: float = DEFAULT_JOIN_SECONDS


def parse_nodes(text: str) -> tuple[int, int]:
    """Return the fewest and the most nodes of ``--nnodes``: ``2`` or ``2:8``.

    Raises:
        ValueError: the text cannot be read.
    """
    found = re.fullmatch(r"(\d{1,5})(?::(\d{1,5}))?", text.strip())
    fewest = int(found[1]) if found else 0
    most = int(found[2] or found[1]) if found else 0
    if not 1 <= fewest <= most <= MOST_NODES:
        raise ValueError(
            f"cannot read --nnodes {text!r}: write a number of nodes, or the fewest and the most, as in 2:8"
        )
    return fewest, most


def parse_endpoint(text: str) -> tuple[str, int]:
    """Return host and port of ``--rdzv-endpoint``.

    Raises:
        ValueError: the text cannot be read.
    """
    found = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::(\d{1,5}))?", text.strip())
    port = int(found[3] or DEFAULT_PORT) if found else 0
    if not found or not 0 < port < 65536:
        raise ValueError(
            f"cannot read --rdzv-endpoint {text!r}: write HOST:PORT of node 0, for example node0:29400 or [fd00::1]:29400"
        )
    return (found[1] or found[2]), port
