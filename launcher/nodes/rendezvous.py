"""Rendezvous of the launchers of a job: all of them join it, and the one of node 0 is its host."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ..errors import NodeError
from .assignment import NodeFacts
from .host import Host
from .inquiry import own_protocol
from .listener import listening
from .member import Membership
from .token import read_token

DEFAULT_PORT = 29400  # torchrun's
DEFAULT_TIMEOUT = 300.0
DEFAULT_JOIN_SECONDS = 10.0
MOST_NODES = 4096


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
    timeout: float = DEFAULT_TIMEOUT
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


@contextmanager
def joined(options: NodeOptions, slots: int, roles: str | None, name: str) -> Iterator[Membership]:
    """Bring this node's launcher into the job, and keep it there until the block ends.

    Args:
        options: of this node.
        slots: how many workers it starts; with roles they say how many.
        roles: ``--roles``; None without.
        name: beginning of the workers' names.

    Raises:
        NodeError: the nodes do not come together.
        TokenError: this node has no token, or another one.
    """
    token = read_token(options.token_file)
    _check_own_address(options)
    own_host = options.own_host or ""
    own_version = f"{version('telegrad')} (protocol {own_protocol()})"
    facts = NodeFacts(own_host, 0 if roles else slots, options.rank, options.nodes, roles, name, own_version)
    with ExitStack() as stack:
        if (host := _host(options, token, facts)) is not None:
            stack.enter_context(closing(host))
            facts = NodeFacts(**{**vars(facts), "host": own_host or options.host, "rank": 0})
        target = options.listen_host if host is not None and options.listen_host else options.host
        yield stack.enter_context(
            closing(Membership(target, options.port, token, facts, options.timeout, options.listen_host))
        )


def _check_own_address(options: NodeOptions) -> None:
    """Check that workers can listen where the user says: they would fail later, and say less."""
    option, host = ("--listen-host", options.listen_host) if options.listen_host else ("--host", options.own_host)
    if host is None:
        return
    try:
        listening(host, 0).close()
    except OSError as error:
        raise NodeError(
            f"this machine cannot listen at {option} {host} ({error.strerror or error}); give one of its own addresses "
            f"(`ip addr`), or leave the option out. Behind NAT: --host PUBLIC --listen-host 0.0.0.0"
        ) from error


def _host(options: NodeOptions, token: bytes, facts: NodeFacts) -> Host | None:
    """Return the host of the job, if that is this node."""
    if options.rank not in (0, None):
        return None
    try:
        return Host(
            options.host, options.port, options.listen_host, token, facts, options.join_seconds, options.timeout
        )
    except NodeError:
        if options.rank == 0:
            raise
        return None  # another machine's address, or another launcher on this one is the host
