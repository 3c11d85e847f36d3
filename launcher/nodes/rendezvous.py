"""Rendezvous of the launchers of a job: all of them join it, and the one of node 0 is its host."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import version

from ..errors import NodeError
from ..restarts.rules import RestartRules
from .assignment import NodeFacts
from .host import Host
from .inquiry import own_protocol
from .listener import listening
from .member import Membership
from .options import NodeOptions
from .token import read_token


@contextmanager
def joined(
    options: NodeOptions, slots: int, roles: str | None, name: str, rules: RestartRules, number: int = 0
) -> Iterator[Membership]:
    """Bring this node's launcher into the job, and keep it there until the block ends.

    Args:
        options: of this node.
        slots: how many workers it starts; with roles they say how many.
        roles: ``--roles``; None without.
        name: beginning of the workers' names.
        rules: of restarts.
        number: of the round that is to begin, if this node has lost its host before.

    Raises:
        NodeError: the nodes do not come together.
        TokenError: this node has no token, or another one.
    """
    token = read_token(options.token_file)
    _check_own_address(options)
    own_host = options.own_host or ""
    own_version = f"{version('telegrad')} (protocol {own_protocol()})"
    facts = NodeFacts(
        own_host, 0 if roles else slots, options.rank, options.nodes, roles, name, own_version, str(rules), round=number
    )
    with ExitStack() as stack:
        if (host := _host(options, token, facts, rules)) is not None:
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


def _host(options: NodeOptions, token: bytes, facts: NodeFacts, rules: RestartRules) -> Host | None:
    """Return the host of the job, if that is this node."""
    if options.rank not in (0, None):
        return None
    try:
        return Host(
            options.host, options.port, options.listen_host, token, facts, options.join_seconds, options.timeout, rules
        )
    except NodeError:
        if options.rank == 0:
            raise
        return None  # another machine's address, or another launcher on this one is the host
