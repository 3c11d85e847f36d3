"""Two machines against each other: one listens, the other asks; both prove the token, and compare versions and clocks."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta
from queue import Empty, Queue
from typing import Any

from ..nodes.assignment import LONGEST_SKEW_SECONDS
from ..nodes.connection import NodeConnection
from ..nodes.inquiry import facts, inquires
from ..nodes.listener import NodeListener
from ..nodes.member import connect, prove
from ..nodes.options import LISTEN_SECONDS
from ..progress import report
from .finding import Finding, ok, problem, warning

PAIR_SECONDS = 30.0
NOTED_SKEW_SECONDS = 5.0
NOBODY_CAME = "run `telegrad doctor HOST:PORT` there, which says whether the way here is open"
NO_JOB = (
    "`telegrad doctor --listen` answers there, and starts no job; end it, and start `telegrad run --node-rank 0` there"
)


def ask(host: str, port: int, token: bytes) -> Iterator[Finding]:
    """Yield what differs between this machine and one that listens.

    Args:
        host: the other machine.
        port: its port.
        token: that both machines have.

    Raises:
        NodeError: it does not prove the token.
        OSError: the connection broke.
    """
    with closing(prove(connect(host, port), token, json.dumps(facts()).encode())) as connection:
        yield from compare(facts(), connection.receive(time.monotonic() + PAIR_SECONDS))


def listen(host: str, port: int, token: bytes, timeout: float = LISTEN_SECONDS) -> Iterator[Finding]:
    """Wait for one other machine; yield who tried the port meanwhile, and what differs between it and this one.

    Args:
        host: address to listen at.
        port: port to listen at.
        token: that both machines have.
        timeout: seconds in which it must come.

    Raises:
        NodeError: the port cannot be had.
    """
    from ...rpc.certificates import Authority

    told: Queue[str | tuple[dict[str, Any], dict[str, Any]]] = Queue()  # address; own facts at that time, the other's

    def answer(connection: NodeConnection, other: bytes) -> None:
        asked, own = inquires(other), facts()
        with suppress(OSError):
            connection.send(own if asked else {"refused": NO_JOB})
        if asked:
            told.put((own, json.loads(other)))

    listener = NodeListener(host, port, token, Authority("doctor.telegrad"), answer, told.put)
    deadline = time.monotonic() + timeout
    report(
        f"waits at {host}:{port}, until {datetime.now() + timedelta(seconds=timeout):%H:%M:%S}: "
        f"run `telegrad doctor {host}:{port}` with the same token on the other machine"
    )
    try:
        while isinstance(found := told.get(timeout=max(deadline - time.monotonic(), 0.0)), str):
            yield ok("the port", f"{found} reached it, and hung up: so `telegrad doctor` begins there")
        yield from compare(*found)
    except Empty:
        yield problem("the other machine", f"it did not come within {timeout:g} s", NOBODY_CAME)
    finally:
        listener.close(PAIR_SECONDS)


def compare(own: dict[str, Any], other: dict[str, Any]) -> Iterator[Finding]:
    """Yield what differs between two machines.

    Args:
        own: facts of this one.
        other: facts of the other.
    """
    who = f"machine {other['name']}"
    for name, number in own["versions"].items():
        there = other["versions"].get(name)
        if there != number:
            advice = f"install the same {'telegrad' if name == 'protocol' else name} on both"
            grave = name in ("telegrad", "protocol")
            yield (problem if grave else warning)(who, f"it has {name} {there}, this one {number}", advice)
    skew = other["clock"] - own["clock"]
    if abs(skew) > LONGEST_SKEW_SECONDS:
        yield problem(who, f"its clock differs by {skew / 60:.0f} minutes", "set the clocks: timedatectl set-ntp true")
    elif abs(skew) > NOTED_SKEW_SECONDS:
        yield warning(
            who, f"its clock differs by {skew:.0f} s", "logs will be hard to compare: timedatectl set-ntp true"
        )
    else:
        yield ok(who, f"the clocks differ by {abs(skew):.1f} s or less")
