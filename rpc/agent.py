"""``Agent``: one worker's end of everything. It joins calls, handlers, lanes, threads and time, and owns the threads.

Clock, executor and lanes come from outside, so that a simulator can run many agents on one thread; every blocking function
of the API is ``wait()`` on a future that one of these methods returned. Floors above add methods
(``server.serve``), control topics (``control.on``), interceptors and handlers of loss (``membership.on_lost``); nothing of
theirs is known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from ..core.errors import AgentClosedError, RpcError, SerializationError
from ..core.futures import Future, thread_role
from ..core.worker_reports import reporter
from ..proto.rpc_pb2 import WorkerRecord
from . import current
from .caller import Caller
from .control_channel import ControlChannel
from .coroutines import Coroutines
from .credits import Amount
from .flow import Flow
from .lanes.base import Connection, Lane
from .lanes.inproc import InProcessLane, InProcessNetwork
from .lanes.ioloop import RefusesToBlock, acquire_loop, release_loop
from .membership import Membership
from .messages import Interceptor, Kind, run_arrived
from .options import GrpcRpcBackendOptions
from .peers import Peers, WorkerInfo
from .pool import Executor, ThreadPool
from .refusals import Refusals
from .security import AcceptorHandshake, Credentials, DialerHandshake, check_secret, job_secret
from .serving import Server
from .timers import Timers
from .wire.control import decode_amount, goodbye, read_reason
from .wire.frames import decode
from .wire.functions import main_script

logger = logging.getLogger("telegrad.rpc")
T = TypeVar("T")


class Agent:
    """One worker of a job.

    Args:
        name: the worker's name, unique in the job.
        rank: its rank.
        options: see ``GrpcRpcBackendOptions``.
        lanes: transports; the first that both sides know is used.
        executor: runs user functions and callbacks; ``None`` makes thread pools.
        loop: runs coroutines; ``None`` makes a thread with an event loop. One that is given is not stopped.
        io_loop: runs timers; ``None`` takes the process's loop, on which the lanes are too.
        now: monotonic seconds.
        secret: the job's secret; ``None`` takes the environment's or the user's.
    """

    def __init__(
        self,
        name: str,
        rank: int,
        options: GrpcRpcBackendOptions | None = None,
        *,
        lanes: Iterable[Lane],
        executor: Executor | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        io_loop: asyncio.AbstractEventLoop | None = None,
        now: Callable[[], float] = time.monotonic,
        secret: bytes | None = None,
    ) -> None:
        self.options = options or GrpcRpcBackendOptions()
        self.name = name
        self.rank = rank
        self.now = now
        self.lanes = {lane.scheme: lane for lane in lanes}
        self.closed = ""
        # Taken by the one who closes; a signal handler could find a lock held by its own thread.
        self._may_close = [True]
        self.leaving = False  # everybody agreed to leave: who is gone from now on is not lost
        self.process_id = os.getpid()
        self.rpc_timeout = self.options.rpc_timeout
        self.keepalive = self.options.keepalive
        self.interceptors: list[Interceptor] = []
        self.reference_types: tuple[type, ...] = ()
        self.debug_sections: dict[str, Callable[[], Any]] = {}
        self.on_close: list[Callable[[], None]] = []
        # Called with the reason, when the job counts this worker as lost.
        self.on_expelled: list[Callable[[str], None]] = []
        self.record = self._make_record()
        self.peers = Peers([], self.record)
        secret = job_secret() if secret is None else check_secret(secret, "secret=")
        self.credentials = Credentials(self.record, secret)
        self.refusals = Refusals(name, now)
        self._known: Future[Any] = Future()
        self._executor = executor or ThreadPool(self.options.num_worker_threads, f"telegrad-{name}")
        self._completions = executor or ThreadPool(4, f"telegrad-{name}-callbacks")
        self._coroutines = Coroutines(f"telegrad-{name}-coroutines", loop)
        self.timers = Timers(now)
        self._io_loop = io_loop
        self._shares_loop = False
        self._flows = threading.Lock()
        self.caller = Caller(self)
        self.control = ControlChannel(self)
        self.server = Server(self, self._executor)
        self.membership = Membership(self)
        self._parts: dict[type, object] = {}

    # -- life

    def listen(self, address: str | None = None) -> None:
        """Accept connections on every lane; ``address`` ("host:port") is for the first."""
        for lane in self.lanes.values():
            self.record.addresses.append(lane.listen(self, address))
            address = None
        own = InProcessLane(InProcessNetwork())
        self.lanes["self"] = own
        self._own_address = own.listen(self, self.record.addresses[0])  # it shortcuts the way to ourselves

    def start(self, records: list[WorkerRecord]) -> None:
        """Begin to work: the workers of the job are known."""
        self.peers = Peers(records, self.record)
        if self._io_loop is None:
            self._io_loop, self._shares_loop = acquire_loop().loop, True
        self.timers.start(self._io_loop)
        self.membership.start()
        self._known.set_result(None)
        current.register(self)
        if launcher := reporter():
            launcher.joined(self.name)

    def close(self, reason: str = "it has shut down", farewell: bool = True) -> None:
        """End everything at once: calls under way fail, handles are void, threads end. Saying it again does nothing."""
        try:
            self._may_close.pop()
        except IndexError:
            return
        self.closed = reason
        current.unregister(self)
        if (launcher := reporter()) and self._known.done():
            launcher.left(agreed=self.leaving)  # first, so that the launcher knows before peers can fail of it
        last = goodbye(reason) if farewell else None
        for peer in self.peers:
            for connection in peer.connections():
                connection.close(last)
        self.caller.fail_where(
            lambda call: True,
            lambda call: AgentClosedError(f"worker {self.name!r} cannot finish {call.what}: {reason}"),
        )
        for action in self.on_close:
            try:
                action()
            except Exception:
                logger.exception("worker %r closes, and a part of it failed to", self.name)
        self._stop_threads()

    def _stop_threads(self) -> None:
        self.timers.close()
        for lane in self.lanes.values():
            lane.close()
        if self._shares_loop:
            release_loop()
        late = self._coroutines.close(2.0) + self._executor.close(2.0) + self._completions.close(2.0)
        if late:
            logger.warning("worker %r closed while user functions still run in %s", self.name, ", ".join(late))

    def check_open(self) -> None:
        """Raise if this agent cannot be used here.

        Raises:
            AgentClosedError: it was closed, or belongs to the process that this one was forked from.
        """
        if self.closed:
            raise AgentClosedError(f"worker {self.name!r} cannot be used: {self.closed}; call rpc.init_rpc(...) again")
        if self.process_id != os.getpid():
            raise AgentClosedError(
                f"worker {self.name!r} belongs to process {self.process_id}, not to this forked child; start a process "
                f"with the spawn method and call rpc.init_rpc(...) there"
            )

    @contextlib.contextmanager
    def use(self) -> Iterator[Agent]:
        """Calls inside the block go through this agent."""
        token = current.agent_variable.set(self)
        try:
            yield self
        finally:
            current.agent_variable.reset(token)

    def new_context(self) -> contextvars.Context:
        """An empty context in which this agent is the current one."""
        context = contextvars.Context()
        context.run(current.agent_variable.set, self)
        return context

    # -- parts of higher layers

    def add_part(self, part: object) -> None:
        """Carry a part of a higher layer, which ``part`` finds by its type."""
        self._parts[type(part)] = part

    def part(self, kind: type[T]) -> T:
        """Return the part of that type.

        Raises:
            KeyError: this agent has none.
        """
        part = self._parts[kind]
        assert isinstance(part, kind)
        return part

    # -- work in threads

    def run_later(self, task: Callable[[], None]) -> None:
        """Run what may call user code (callbacks, destructors, unpicklers) in a thread made for that."""
        try:
            self._completions.submit(task)
        except RpcError:
            task()  # closing: no thread is left, and whoever waits must not hang

    def works_here(self) -> bool:
        """Return whether this thread runs user functions or callbacks of this agent, or a loop, which must not block."""
        blocker: object = thread_role.blocker
        return isinstance(blocker, RefusesToBlock) or blocker is self._executor or blocker is self._completions

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any], context: contextvars.Context) -> Future[Any]:
        """Run a user's coroutine on this agent's event loop; the future holds its outcome."""
        return self._coroutines.run(coroutine, context)

    # -- what lanes ask (lanes.base.Host)

    def dialer_handshake(self, expected_identity: bytes, address: str) -> DialerHandshake:
        """The dialer's end of a handshake with the worker of that identity at that address."""
        return self.credentials.dialer_handshake(expected_identity, address)

    def acceptor_handshake(self) -> AcceptorHandshake:
        """The acceptor's end of one."""
        return self.credentials.acceptor_handshake()

    def roster(self) -> Future[Any]:
        """Completes when the workers of the job are known."""
        return self._known

    def admit(self, handshake: AcceptorHandshake, connection: Connection) -> str:
        """Why a joiner that proved the secret is refused; empty if it is admitted."""
        return self.membership.admit(handshake, connection)

    def refused(self, address: str, reason: str) -> None:
        """A joiner was turned away."""
        self.refusals.add(address, reason)

    def connected(self, connection: Connection) -> None:
        """A dialed connection is open."""
        self.membership.connected(connection)

    def disconnected(self, connection: Connection, error: Exception) -> None:
        """A connection ended."""
        self.flow(connection).close()
        if not self.closed and connection.rank >= 0:
            self.membership.disconnected(connection, error)

    def received(self, connection: Connection, frame: Any, owned: bool) -> None:
        """A frame arrived. Runs in a reader's thread: quick, no user code. One that cannot be read ends its connection."""
        try:
            self._read(connection, frame, owned)
        except Exception:
            sender = self.peers.at(connection.rank).info.name
            logger.exception(
                "worker %r closes a connection to worker %r: a frame of %d bytes makes no sense",
                self.name,
                sender,
                len(frame),
            )
            connection.close()

    def _read(self, connection: Connection, frame: Any, owned: bool) -> None:
        kind = frame[0]
        if kind in (Kind.REQUEST, Kind.REPLY):
            message = decode(frame, owned, connection.rank)
            message.flow, message.size = connection.flow or self.flow(connection), len(frame)
            if not run_arrived(self.interceptors, message):
                message.flow.used(message.size)
                return
            if kind == Kind.REQUEST:
                if self.peers.at(connection.rank).gone:
                    message.flow.used(message.size)
                else:
                    self.server.accept(message, connection)
            else:
                self.caller.complete(message)
        elif kind == Kind.CONTROL:
            self.control.received(self.peers.at(connection.rank), frame)
        elif kind == Kind.ACKNOWLEDGE:
            peer = self.peers.at(connection.rank)
            self.control.acknowledged(peer, frame)
            self.membership.losses.answered(peer)
        elif kind == Kind.RELAY:
            self.membership.relayed(frame)
        elif kind == Kind.CREDIT:
            self.flow(connection).credited(decode_amount(frame))
        elif kind == Kind.ASK:
            self.flow(connection).asked(decode_amount(frame))
        elif kind == Kind.GOODBYE:
            self.membership.left(connection, read_reason(frame))
        elif kind == Kind.EXPELLED:
            self.membership.losses.expelled(self.peers.at(connection.rank), read_reason(frame))
        else:
            raise SerializationError(f"there is no frame of kind {kind}; use one version of telegrad for all workers")

    # -- flow control

    def flow(self, connection: Connection) -> Flow:
        """Return the flow control of a connection, made when first asked for."""
        if connection.flow is None:
            with self._flows:
                if connection.flow is None:
                    limit = Amount(self.options.window_bytes, self.options.window_messages)
                    connection.flow = Flow(connection, limit, self.now, self.server.resume)
        return connection.flow

    # -- looking

    def info(self) -> WorkerInfo:
        """This worker."""
        return WorkerInfo(self.name, self.rank)

    def open_work(self) -> int:
        """How much is under way here: calls, requests being served, callbacks, unacknowledged control messages."""
        serving = sum(not call.abandoned for call in list(self.server.serving))
        return len(self.caller.table) + serving + self.control.open() + self._completions.busy()

    def activity(self) -> int:
        """Requests sent or accepted so far: shows that something happened between two looks."""
        return self.caller.table.sent + self.server.accepted

    def debug_info(self) -> dict[str, Any]:
        """What goes on here, for people and tests."""
        info: dict[str, Any] = {
            "worker": self.name,
            "rank": self.rank,
            "pending_calls": len(self.caller.table),
            "pending": self.caller.table.descriptions(),
            "serving": len(self.server.serving),
            "flow": {peer.info.name: [self.flow(way).counts() for way in peer.connections()] for peer in self.peers},
            "control_unacknowledged": self.control.open(),
            "joiners_refused": self.refusals.counts(),
            "peers": {peer.info.name: self.membership.describe(peer) for peer in self.peers},
        }
        if isinstance(self._executor, ThreadPool):
            info["threads"] = self._executor.counts()
        for name, section in self.debug_sections.items():
            info[name] = section()
        return info

    def _make_record(self) -> WorkerRecord:
        return WorkerRecord(
            name=self.name,
            rank=self.rank,
            identity=secrets.token_bytes(16),
            process_id=self.process_id,
            main_script=main_script(),
        )

    def own_address(self) -> str:
        """Where this agent reaches itself."""
        return self._own_address
