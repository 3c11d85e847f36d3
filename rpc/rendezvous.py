"""How workers find one another: ``env://`` and ``tcp://host:port`` (rank 0 hosts the meeting), or ``file:///path``.

Rank 0's agent listens at the meeting's address itself, so a job needs one known port and no further server. Every way ends
with the same list of worker records on every worker, or with one error that says who did not come or who contradicts whom.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from ..core.errors import RendezvousError
from ..proto.telegrad_pb2 import WorkerRecord
from .agent import Agent
from .lanes.base import Lane
from .lanes.grpc import GrpcLane
from .meeting import MeetingHost, attend
from .meeting_file import meet_in_file

LOOPBACK = re.compile(r"127(\.\d{1,3}){3}|localhost|::1|\[::1\]")


class Rendezvous(Protocol):
    """One way to meet."""

    def prepare(self, lanes: list[Lane], rank: int) -> str | None:
        """Before the agent listens: the address that it must take, if any."""
        ...

    def meet(self, agent: Agent, world_size: int, timeout: float) -> list[WorkerRecord]:
        """Wait for everybody, up to ``timeout`` seconds.

        Raises:
            RendezvousError: somebody did not come, or contradicts.
        """
        ...


class TcpRendezvous:
    """Rank 0 hosts the meeting at ``address`` ("host:port")."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._host: MeetingHost | None = None

    def prepare(self, lanes: list[Lane], rank: int) -> str | None:
        """Rank 0 takes the address; the others take any."""
        if rank != 0:
            return None
        lane = next((lane for lane in lanes if isinstance(lane, GrpcLane)), None)
        if lane is None:
            raise RendezvousError("rank 0 hosts the meeting over gRPC; keep 'grpc' among lanes=, or use file://")
        self._host = MeetingHost(lane)
        return self.address

    def meet(self, agent: Agent, world_size: int, timeout: float) -> list[WorkerRecord]:
        """Host the meeting, or attend it."""
        if self._host is not None:
            return self._host.meet(agent, world_size, timeout)
        return attend(agent, self.address, world_size, timeout)


class FileRendezvous:
    """Every worker writes itself into one file that all can reach."""

    def __init__(self, path: str) -> None:
        self.path = path

    def prepare(self, lanes: list[Lane], rank: int) -> str | None:
        """Any address will do."""
        return None

    def meet(self, agent: Agent, world_size: int, timeout: float) -> list[WorkerRecord]:
        """Meet in the file."""
        return meet_in_file(self.path, agent.record, world_size, timeout)


@dataclass
class Meeting:
    """Where to meet, and as whom."""

    rendezvous: Rendezvous
    rank: int
    world_size: int


def plan_meeting(init_method: str, rank: int, world_size: int | None) -> Meeting:
    """Understand ``init_method``; rank and world size come from the arguments, else from the URL, else the environment.

    Raises:
        RendezvousError: something is missing or makes no sense.
        TypeError: a rank or world size that is no whole number.
    """
    for argument, given in (("rank", rank), ("world_size", world_size)):
        if given is not None and not isinstance(given, int):
            raise TypeError(f"{argument} must be a whole number; you gave {given!r}")
    url = urlsplit(init_method)
    query = {key: values[-1] for key, values in parse_qs(url.query).items()}
    rank = rank if rank >= 0 else _number("rank", query.get("rank"), "RANK")
    if world_size is None or world_size < 0:
        world_size = _number("world_size", query.get("world_size"), "WORLD_SIZE")
    if world_size < 1 or not 0 <= rank < world_size:
        raise RendezvousError(
            f"rank={rank} with world_size={world_size} makes no sense; ranks go from 0 to world_size - 1"
        )
    return Meeting(_rendezvous(init_method, url.scheme, url.netloc, url.path), rank, world_size)


def _rendezvous(init_method: str, scheme: str, netloc: str, path: str) -> Rendezvous:
    if scheme == "env":
        return TcpRendezvous(_loopback(f"{_variable('MASTER_ADDR')}:{_variable('MASTER_PORT')}"))
    if scheme == "tcp" and ":" in netloc:
        return TcpRendezvous(_loopback(netloc))
    if scheme == "file" and path:
        return FileRendezvous(path)
    raise RendezvousError(f"init_method={init_method!r} is none of env://, tcp://host:port and file:///path")


def _loopback(address: str) -> str:
    host, _, port = address.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise RendezvousError(f"{port!r} is not a port; use a number from 1 to 65535")
    if not LOOPBACK.fullmatch(host):
        raise RendezvousError(
            f"{host!r} is not an address of this machine alone; without TLS workers listen on loopback only, because "
            f"whoever reaches a worker could try its secret. Use 127.0.0.1"
        )
    return address.replace("localhost", "127.0.0.1")


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise RendezvousError(
            f"the environment variable {name} is not set, which init_method='env://' needs; start workers with "
            f"`telegrad run`, or set it, or give init_method='tcp://127.0.0.1:PORT'"
        )
    return value


def _number(argument: str, given: str | None, variable: str) -> int:
    text = given if given is not None else os.environ.get(variable)
    if text is None:
        raise RendezvousError(
            f"{argument} is missing: pass {argument}= to init_rpc, or set {variable} (`telegrad run` does)"
        )
    if not text.lstrip("-").isdigit():
        raise RendezvousError(f"{argument} must be a number; {variable} or the URL says {text!r}")
    return int(text)
