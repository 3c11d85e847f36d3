"""Options of an agent."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from ..base.errors import ArgumentKindError, ArgumentValueError
from .device_maps import add_to_map
from .security.tls import TlsFiles

DEFAULT_RPC_TIMEOUT = 60.0
DEFAULT_INIT_METHOD = "env://"
DEFAULT_INIT_TIMEOUT = 60.0
UNSET_RPC_TIMEOUT = -1.0
STREAM_AHEAD = 8  # items of a stream that may be made before they are taken
REPLACEMENT_SECONDS = 60.0
RESTART_VARIABLE = "TELEGRAD_RESTART"
MIB = 1 << 20
GIB = 1 << 30


@dataclass
class RpcBackendOptions:
    """Options of every backend (``torch.distributed.rpc.RpcBackendOptions``).

    Attributes:
        rpc_timeout: seconds until a call without a time-out of its own fails; 0 means never.
        init_method: where the workers find one another: ``env://``, ``tcp://host:port``, ``file:///path``,
            ``etcd://host:port/job`` or ``mpi://``.
    """

    rpc_timeout: float = DEFAULT_RPC_TIMEOUT
    init_method: str = DEFAULT_INIT_METHOD

    def __post_init__(self) -> None:
        check_timeout("rpc_timeout", self.rpc_timeout)
        if not isinstance(self.init_method, str):
            raise TypeError(f"init_method must be a text like tcp://host:port; you gave {self.init_method!r}")


def check_timeout(name: str, seconds: object) -> float:
    """Return a time-out as a float.

    Raises:
        ArgumentValueError: ``seconds`` is negative, nan, or no number that a float holds.
        ArgumentKindError: ``seconds`` is no number.
    """
    wrong = f"{name} must be a number of seconds, 0 for none; you gave {seconds!r}"
    if not isinstance(seconds, (int, float)):
        raise ArgumentKindError(wrong)
    if not 0 <= seconds <= sys.float_info.max and seconds != math.inf:
        raise ArgumentValueError(wrong)
    return float(seconds)


@dataclass
class _ThreadOptions:
    # In a class of its own because the fields of the last base class come first, and this is PyTorch's first argument.
    num_worker_threads: int = 16


@dataclass
class GrpcRpcBackendOptions(RpcBackendOptions, _ThreadOptions):
    """Options of the gRPC agent.

    Attributes:
        num_worker_threads: how many user functions run at a time on this worker.
        rpc_timeout: see ``RpcBackendOptions``.
        init_method: see ``RpcBackendOptions``.
        lanes: names of the lanes to use, the preferred first; ``None`` for all. ``"unix"`` and ``"tcp"`` are sockets that gRPC
            sets up. With ``["grpc"]``, and where two workers cannot have a socket, gRPC carries everything.
        init_timeout: seconds in which all workers must have joined.
        keepalive: seconds of silence after which a lane asks whether the peer is there; also the seconds that it waits for the
            answer. Give all workers the same.
        window_bytes: how many bytes of calls may be on their way to one worker and not begun there, and how many bytes of
            answers may be not yet received. Beyond that the calling thread waits, within the call's time-out. A message that
            is larger than the window is sent when no other is under way.
        window_messages: the same limit as a number of calls, and of answers.
        max_message_bytes: size of the largest message that this worker sends: a call's arguments or its result.
        reconnect_timeout: seconds during which a broken connection may come back before its peer counts as lost.
        tls: this worker's certificate files; ``None`` takes those of its launcher, if it made some. With them, all that leaves
            this machine is encrypted, and both ends of each connection prove who they are.
        insecure: let workers listen on and dial other networks than the loopback without TLS. Anybody between two workers can
            then read and change their messages. The job's secret still keeps other processes from joining.
        host: name or address at which others reach this worker. ``None`` takes ``TELEGRAD_HOST``. If that is not set either,
            rank 0 takes the host of the rendezvous, and other ranks the address from which this machine reaches that host.
        listen_host: address of this machine to listen at, if others reach it by another one, as behind NAT: ``"0.0.0.0"``
            for all. ``None`` takes ``TELEGRAD_LISTEN_HOST``.
        replace_within: seconds in which a lost worker of a job of fixed size may be replaced by one of its name and rank: by
            itself, started again. ``shutdown`` of the others waits so long for it. 0: lost workers are not replaced. ``None``:
            60 if a launcher says that it starts workers again (``TELEGRAD_RESTART``), else 0. Give all workers the same.
        ignore_rref_leaks: do not log a warning at shutdown about references to this worker's values that others still hold.
        device_maps: for the name of another worker, the device there by the device here (PyTorch's option), for arrays on GPUs
            and other devices. Replies take it backwards. Without an entry, arrays arrive in the host memory.
        memory_budget: most bytes of memory for the arrays that this worker has received, or that its references keep (those
            that it made, if nothing else refers to them). More lies in ``spill_dir``, or fails with ``MemoryBudgetError``.
            Arrays under 64 KiB are not counted. ``None``: no bound.
        spill_dir: folder, on a disk, of a file for arrays beyond ``memory_budget``. The kernel keeps in memory what is in use
            of them. The file has no name, and ends with the process. ``None``: there is no file.
        rref_places: record the line of the program that makes each reference, for ``telegrad memory --where`` and
            ``rpc.observe``. It takes some microseconds a reference. ``None`` does it if ``TELEGRAD_RREF_PLACES`` is 1.
    """

    lanes: list[str] | None = field(default=None, kw_only=True)
    init_timeout: float = field(default=DEFAULT_INIT_TIMEOUT, kw_only=True)
    keepalive: float = field(default=10.0, kw_only=True)
    reconnect_timeout: float = field(default=10.0, kw_only=True)
    window_bytes: int = field(default=64 * MIB, kw_only=True)
    window_messages: int = field(default=4096, kw_only=True)
    max_message_bytes: int = field(default=4 * GIB, kw_only=True)
    tls: TlsFiles | None = field(default=None, kw_only=True)
    insecure: bool = field(default=False, kw_only=True)
    host: str | None = field(default=None, kw_only=True)
    listen_host: str | None = field(default=None, kw_only=True)
    replace_within: float | None = field(default=None, kw_only=True)
    ignore_rref_leaks: bool = field(default=False, kw_only=True)
    rref_places: bool | None = field(default=None, kw_only=True)
    memory_budget: int | None = field(default=None, kw_only=True)
    spill_dir: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    device_maps: dict[str, dict[Any, Any]] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.num_worker_threads, int) or self.num_worker_threads < 1:
            raise ArgumentKindError(
                f"num_worker_threads must be a whole number, at least 1; you gave {self.num_worker_threads!r}"
            )
        for name in ("window_bytes", "window_messages", "max_message_bytes", "memory_budget"):
            number = getattr(self, name)
            if name == "memory_budget" and number is None:
                continue
            if not isinstance(number, int) or number < 1:
                raise ValueError(f"{name} must be a whole number above 0; you gave {number!r}")
        if self.spill_dir is not None:
            if not isinstance(self.spill_dir, (str, os.PathLike)) or not os.fspath(self.spill_dir):
                raise ArgumentKindError(f"spill_dir must be a folder; you gave {self.spill_dir!r}")
            self.spill_dir = os.fspath(self.spill_dir)
            if self.memory_budget is None:
                raise ValueError("spill_dir is for arrays beyond memory_budget: give memory_budget= too, in bytes")
        if self.tls is not None and not isinstance(self.tls, TlsFiles):
            raise ValueError(f"tls must be TlsFiles(certificate, key, ca); you gave {self.tls!r}")
        if isinstance(self.lanes, str):
            raise ValueError(f"lanes must be a list of names; write lanes=[{self.lanes!r}]")
        if not isinstance(self.lanes, (list, tuple, NoneType)):
            raise ArgumentKindError(f"lanes must be a list of names, as ['unix', 'grpc']; you gave {self.lanes!r}")
        for name in ("host", "listen_host"):
            if not isinstance(getattr(self, name), (str, NoneType)):
                raise ArgumentKindError(f"{name} must be a name or an address; you gave {getattr(self, name)!r}")
        for name in ("init_timeout", "keepalive", "reconnect_timeout"):
            seconds = getattr(self, name)
            if not isinstance(seconds, (int, float)) or not seconds > 0:
                raise ValueError(f"{name} must be a number of seconds above 0; you gave {seconds!r}")
        if self.replace_within is not None:
            check_timeout("replace_within", self.replace_within)

        given, self.device_maps = self.device_maps or {}, {}
        if not isinstance(given, Mapping):
            raise ArgumentKindError(f"device_maps is, by name of a worker, a map of devices; you gave {given!r}")
        for to, device_map in given.items():
            add_to_map(self.device_maps, to, device_map)

    def set_device_map(self, to: str, device_map: Mapping[Any, Any]) -> None:
        """Add devices to the map for a worker (``torch.distributed.rpc.TensorPipeRpcBackendOptions.set_device_map``).

        Args:
            to: name of the other worker.
            device_map: the device there by the device here: names such as ``"cuda:0"``, numbers of GPUs, ``torch.device``s.

        Raises:
            ArgumentKindError, ArgumentValueError: a device has no name, or two devices here would be one there.
        """
        add_to_map(self.device_maps, to, device_map)

    def replacement_seconds(self) -> float:
        """Return the seconds in which a lost worker may be replaced; 0 if lost workers are not replaced."""
        if self.replace_within is not None:
            return self.replace_within
        return REPLACEMENT_SECONDS if os.environ.get(RESTART_VARIABLE) in ("one", "rest") else 0.0


def maps_memory(lanes: Sequence[str] | None) -> bool:
    """Return whether a worker may map another's memory: not if its lanes were chosen, and are none of one machine's."""
    return lanes is None or not {"unix", "inproc"}.isdisjoint(lanes)
