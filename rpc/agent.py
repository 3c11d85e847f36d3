"""``Agent``: everything that one worker needs for RPC. It makes the components of ``rpc`` and connects them.

Clock, executor and lanes are given to it, so that a simulator can run many agents on one thread. Every blocking function
for users is ``wait()`` on a future that a component returned. Higher layers add methods (``server.serve``), control topics
(``control.on``), interceptors (``codec.intercept``) and handlers of losses (``losses.on_lost``); ``agents/`` lists them.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.worker_reports import reporter
from ..core.futures import in_thread, interrupts_protected, shield
from ..proto.rpc_pb2 import WorkerRecord
from .calls.caller import Caller
from .calls.codec import Codec
from .calls.late_parts import LateParts
from .calls.questions import Questions
from .calls.serving import Server
from .calls.waits import CallWaits
from .device_maps import check_workers, encode_maps
from .flow.flow import Flow
from .links.control_channel import ControlChannel
from .links.peers import Peers
from .links.relay import Relay
from .links.sessions import Sessions
from .links.worker_info import WorkerInfo
from .losses.losses import Losses
from .options import GrpcRpcBackendOptions
from .receiver import Receiver
from .running import agent_variable, running_agents
from .security.handshake import Credentials, check_secret, job_secret
from .security.tls import own_tls
from .state import SHUT_DOWN, AgentState
from .threads.agent_threads import AgentThreads
from .threads.ioloop import acquire_loop, release_loop
from .threads.timers import Timers
from .wire.control import Amount, encode_goodbye
from .wire.function_names import main_script
from .wire.header import FRAME_HEAD, FrameKind
from .wire.python_versions import own_version

if TYPE_CHECKING:
    from .lanes.lane import Lane
    from .lanes.large.landing import Landing
    from .lanes.session import Session
    from .links.peer import Peer
    from .threads.pool import Executor
    from .wire.memory_budget import MemoryBudget

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
        private: it carries something else than the calls of user code, which never go through it: a process group.

    Raises:
        AuthenticationError: the secret is too short, or its file or one of ``options.tls`` cannot be used.

    Attributes:
        options: those that it was given.
        rendezvous: address at which its workers have come together, and rank 0 listens; empty unless that was over TCP.
        number: names this worker in messages: its rank, unless a dynamic group gave it another.
        rpc_timeout: seconds that a call may take if it has no timeout of its own; 0 is for ever.
        debug_counts: functions whose results, PyTorch's counts by their names, ``debug_info`` includes.
        open_counts: functions that return how much else is under way here, for ``open_work``.
        debug_sections: by name, functions whose results ``debug_info`` includes.
        on_close: called when the agent is closed.
        on_ending: called when user code here has begun a graceful shutdown.
        on_leave: called when a graceful shutdown has found that nothing is under way, before the agent is closed.
        on_expelled: called with the reason, when the job counts this worker as lost.
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
        private: bool = False,
    ) -> None:
        self.options = options = options or GrpcRpcBackendOptions()
        self.private = private
        self.rendezvous = ""
        secret = job_secret() if secret is None else check_secret(secret, "secret=")
        tls = own_tls(options.tls)
        self.name = name
        self.rank = self.number = rank
        self.rpc_timeout = options.rpc_timeout
        self.debug_counts: list[Callable[[], dict[str, int]]] = [self._counts]
        self.open_counts: list[Callable[[], int]] = []
        self.debug_sections: dict[str, Callable[[], Any]] = {}
        context = contextvars.Context()
        if not private:
            context.run(agent_variable.set, self)
        self.on_close: list[Callable[[], None]] = []
        self.on_ending: list[Callable[[], None]] = []
        self.on_leave: list[Callable[[], None]] = []
        self.on_expelled: list[Callable[[str], None]] = []
        self._io_loop = io_loop
        self._shares_loop = False
        self._parts: dict[type, object] = {}
        self._closing = threading.Lock()  # taken by the thread that closes
        self.state = AgentState(name, rank)
        self.record = WorkerRecord(
            name=name,
            rank=rank,
            number=rank,
            identity=secrets.token_bytes(16),
            process_id=self.state.process_id,
            main_script=main_script(),
            python=own_version(),
            certificate_name=tls.names[0] if tls else "",
            device_maps=encode_maps(options.device_maps),
        )
        self.credentials = Credentials(self.record, secret, tls)
        self.peers = Peers(self.record)
        self.timers = Timers(now)
        self.threads = AgentThreads(name, options.num_worker_threads, executor, loop, context, self.timers)
        self._make_components(lanes, options)
        self._connect_components()

    def _make_components(self, lanes: Iterable[Lane], options: GrpcRpcBackendOptions) -> None:
        """Make the components; each is given some of those made before it."""
        state, peers, timers, threads = self.state, self.peers, self.timers, self.threads
        self.codec = Codec(options.max_message_bytes, self.name, self._memory_budget(options))
        self.sessions = Sessions(state, self.credentials, peers, lanes, self._new_flow, timers, options)
        relay = Relay(state, peers, self.sessions, lambda number: self.losses.next_hop(number))
        self.control = ControlChannel(timers, relay.send)
        self.losses = Losses(state, peers, self.control, timers, options, self._expel)
        self.caller = Caller(state, peers, self.sessions, self.control, self.codec, timers, threads)
        self.questions = Questions(self.caller, timers)
        self.server = Server(state, peers, self.control, self.codec, timers, threads)
        receiver = Receiver(peers, self.codec, self.caller, self.server, self.control, relay, self.losses)
        self.late = LateParts(self.server, self.control)
        self.waits = CallWaits(peers, self.caller, self.questions, self.server, threads)
        self.sessions.received = receiver.received
        self.sessions.landing = self._landing
        self.sessions.under_way = (self.caller.table.calls, self.server.waiting)

    def _memory_budget(self, options: GrpcRpcBackendOptions) -> MemoryBudget | None:
        if options.memory_budget is None:
            return None
        from .wire.memory_budget import MemoryBudget  # few workers have one

        budget = MemoryBudget(options.memory_budget, options.spill_dir, self.name)
        self.debug_sections["memory"] = budget.counts
        return budget

    def _landing(self, session: Session, front: memoryview, size: int) -> Landing | None:
        kind, _, method, _, _ = FRAME_HEAD.unpack_from(front)
        if kind != FrameKind.REQUEST:
            return self.caller.landing(session, front, size)
        return None if (find := self.server.landings.get(method)) is None else find(front, size)

    def _new_flow(self, session: Session) -> Flow:
        limit = Amount(self.options.window_bytes, self.options.window_messages)
        return Flow(session, limit, self.timers.program, self.server.resume)

    def _connect_components(self) -> None:
        """Connect the components' events to their handlers; the order of the handlers matters."""
        self.sessions.on_opened.append(self.losses.opened)
        self.sessions.on_ended.append(self.losses.ended)
        self.sessions.on_dialed += [self.caller.redialed, lambda peer, _: self.control.flush(peer)]
        self.losses.on_cut += [self.caller.link_cut, self.control.reroute, self.sessions.redial_in_time]
        self.losses.on_lost += [self.caller.peer_lost, self.server.caller_lost, self.sessions.peer_lost]

    # -- from start to end

    def listen(self, address: str | None = None) -> None:
        """Accept sessions on every lane; ``address`` ("host:port") is for the first, its host for all."""
        self.sessions.listen(address)

    def joined(
        self, records: Iterable[WorkerRecord], dynamic: bool, places: int = 0, absent: Iterable[WorkerRecord] = ()
    ) -> None:
        """Take the workers of the job and this worker's number. Called before the parts of higher layers are made.

        Args:
            records: the workers that the rendezvous has found, this one included.
            dynamic: others may join and leave at any time.
            places: number of ranks, if lost workers of the job are replaced; else 0.
            absent: the last workers of the ranks that have none now.

        Raises:
            ArgumentValueError: there is a device map for a worker that is none of the job.
        """
        self.state.dynamic, self.state.places = dynamic, places
        self.peers.fill(records)
        if self.options.device_maps and not dynamic:
            check_workers(self.options.device_maps, self.name, {peer.info.name for peer in self.peers})
        self.peers.remember(absent)
        self.number = self.state.number = self.record.number = self.peers.mine().number

    def start(self, records: Iterable[WorkerRecord] | None = None) -> None:
        """Begin to work; the workers of the job are those of ``joined``, or ``records``."""
        if records is not None:
            self.peers.fill(records)
        if self._io_loop is None:
            self._io_loop, self._shares_loop = acquire_loop().loop, True
        self.timers.start(self._io_loop)
        self.losses.watch()
        self.sessions.known.set_result(None)
        running_agents.append(self)
        shield.install()
        if launcher := reporter():
            launcher.joined(self.name, self.state.ends_together)

    @property
    def closed(self) -> str:
        """Reason why the agent is closed; empty as long as it is open."""
        return self.state.closed

    def close(self, reason: str = SHUT_DOWN, farewell: bool = True) -> None:
        """End everything at once: calls under way fail, references cannot be used, threads end. Closing again does nothing.

        Args:
            reason: goes into errors here and, with ``farewell``, into those of the peers.
            farewell: tell the peers that this worker leaves.
        """
        if interrupts_protected():  # a signal handler, whose own thread may hold a lock for that
            in_thread(self.close, reason, farewell)
            return
        if not self._closing.acquire(blocking=False):
            return
        self.state.closed = reason
        if self in running_agents:
            running_agents.remove(self)
        if (launcher := reporter()) and self.sessions.known.done():
            # First: the launcher must know before peers can fail because of it.
            launcher.left(agreed=self.state.leaving)
        last = encode_goodbye(reason, self.state.leaving, self.losses.last_report()) if farewell else None
        for peer in self.peers.met():
            for session in peer.sessions():
                session.close(last)
        self.caller.close(reason)
        for action in self.on_close:
            try:
                action()
            except Exception:
                logger.exception("worker %r closes; a part of it could not be closed", self.name)
        self._stop_threads()
        if not running_agents:
            shield.uninstall()

    def _stop_threads(self) -> None:
        self.timers.close()
        if self._shares_loop:
            release_loop()
        self.sessions.close()
        if late := self.threads.close():
            logger.warning("worker %r closed while user functions still run: %s", self.name, ", ".join(late))

    def _expel(self, reason: str) -> None:
        for handler in self.on_expelled:
            handler(reason)
        self.threads.run_later(lambda: self.close(reason, farewell=False))

    # -- the current agent

    @contextlib.contextmanager
    def use(self) -> Iterator[Agent]:
        """Let calls inside the block go through this agent."""
        token = agent_variable.set(self)
        try:
            yield self
        finally:
            agent_variable.reset(token)

    def new_context(self) -> contextvars.Context:
        """Return an empty context in which this agent is the current one."""
        return self.threads.new_context()

    # -- parts of higher layers

    def add_part(self, part: object) -> None:
        """Keep a part of a higher layer; ``part`` finds it by its type."""
        self._parts[type(part)] = part

    def part(self, kind: type[T]) -> T:
        """Return the part of that type, made now if it is a late one.

        Raises:
            KeyError: this agent has none.
        """
        try:
            part = self._parts[kind]
        except KeyError:
            self.late.ready(kind.__name__)
            part = self._parts[kind]
        assert isinstance(part, kind)
        return part

    def has(self, kind: type) -> bool:
        """Return whether a part of that type has been made."""
        return kind in self._parts

    # -- state, for users and tests

    def info(self) -> WorkerInfo:
        """Return the name and rank of this worker."""
        return WorkerInfo(self.name, self.rank)

    def open_work(self) -> int:
        """Return how much is under way here: calls, requests served, callbacks, unacknowledged control messages."""
        serving = sum(not call.abandoned for call in list(self.server.serving.values()))
        others = sum(count() for count in self.open_counts)
        return self.caller.table.open() + serving + self.control.open() + self.threads.callbacks() + others

    def activity(self) -> int:
        """Return how many requests were sent or accepted so far. If it has not changed, there was no activity."""
        return self.caller.table.sent + self.server.accepted

    def debug_info(self) -> dict[str, Any]:
        """Return what this agent is doing, for people and tests."""
        return {
            "worker": self.name,
            "rank": self.rank,
            "pending_calls": len(self.caller.table),
            "pending": self.caller.table.descriptions(),
            "serving": len(self.server.serving),
            "flow": {peer.info.name: self._flow_counts(peer) for peer in self.peers},
            "control_unacknowledged": self.control.open(),
            "joiners_refused": self.sessions.refusals.counts(),
            "peers": {peer.info.name: peer.describe() for peer in self.peers},
            **self.threads.counts(),
            **{name: value for counts in self.debug_counts for name, value in counts().items()},
            **{name: section() for name, section in self.debug_sections.items()},
        }

    def _counts(self) -> dict[str, int]:
        """Return the counts of calls and threads that PyTorch has, by its names."""
        threads = self.threads.counts().get("threads", {})
        parked = sum(call.parked for call in list(self.server.serving.values()))
        return {
            "agent.thread_pool_size": self.threads.size,
            "agent.num_idle_threads": max(self.threads.size - threads.get("running", 0), 0),
            "agent.client_active_calls": len(self.caller.table),
            "agent.server_active_calls": len(self.server.serving),
            "agent.server_active_async_calls": parked,
        }

    def _flow_counts(self, peer: Peer) -> list[dict[str, Any]]:
        return [session.flow.counts() for session in peer.sessions()]
