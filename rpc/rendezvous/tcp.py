"""Rendezvous over gRPC: rank 0 keeps the list of members, the others join on a stream that begins with the handshake.

An address can serve several rendezvous, each with a *purpose*: the workers of ``init_rpc``, and those of process groups. The
agent that listens there need not be a member of all: it keeps the member lists of the others for them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc

from ...base.errors import AgentClosedError, AuthenticationError, RendezvousError
from ...core.futures import Future, complete_once
from ...proto.rpc_pb2 import JoinReply, JoinRequest, WorkerRecord
from ..lanes.addresses import host_of
from ..lanes.grpc_channel import connect, open_channel
from ..lanes.grpc_handshake import WELCOME_KEY, introduce, translate
from ..lanes.grpc_options import options_for
from ..lanes.lane import ServingLane
from ..links.worker_records import WorkerRecords
from ..threads.ioloop import acquire_loop, release_loop, within
from ..threads.notices import WaitNotices
from .members import MemberList

if TYPE_CHECKING:
    from ..lanes.lane import Lane
    from ..security.handshake import Credentials

logger = logging.getLogger("telegrad.rpc")
JOIN = "/telegrad.Rendezvous/Join"
TCP_RETRY_SECONDS = 0.05
SILENT = "it took the connection, and said nothing in time"
Admit = Callable[[WorkerRecord], Awaitable[list[WorkerRecord]]]  # lets a worker join, and returns the records of all
ANSWERS = 64  # answers that may be on their way at the same time: each is as long as the member list
ANY_WORKER = WorkerRecord()
TCP_GRACE_SECONDS = 2.0  # a joiner waits longer by this, for the host's answer: it says which workers are missing


class OpenRendezvous:
    """Rendezvous that is not complete yet: its members so far, and the future of the records of all."""

    def __init__(self, world_size: int) -> None:
        self.members = MemberList(world_size)
        self.closed: Future[WorkerRecords] = Future()
        self._answer: bytes | None = None  # the same for all joiners, once all have joined

    def join(self, worker: WorkerRecord, world_size: int, context: object = None) -> None:
        """Add a worker; the last one completes ``closed``.

        Args:
            worker: its record.
            world_size: number of workers, as it says.
            context: of its request.

        Raises:
            RendezvousError: it contradicts the others.
        """
        try:
            self.members.join(worker, world_size, context)
        except RendezvousError as error:
            self.fail(str(error))
            raise
        if self.members.complete:
            complete_once(self.closed, WorkerRecords.of(self.members.workers()))

    def fail(self, failure: str) -> None:
        """Let the rendezvous fail, unless a joiner has completed it at this moment."""
        self.members.failure = self.members.failure or failure
        complete_once(self.closed, error=RendezvousError(failure))

    def expire(self, seconds: float, remedy: str) -> None:
        """Let the rendezvous fail because its time is over."""
        self.fail(f"the rendezvous did not fill within {seconds:g} s: {self.members.missing()}; {remedy}")

    async def answer(self) -> bytes:
        """Return the answer with the records of all. It is made once, because it may go to thousands of joiners."""
        records = await self.closed
        if self._answer is None:
            self._answer = JoinReply(workers=records.encode()).SerializeToString()
        return self._answer


class RendezvousHost:
    """Rank 0's part of the rendezvous. It is registered with the lane before the lane listens; joiners that come early wait.

    Args:
        lane: listens at the address of the rendezvous.
        purpose: of rank 0's own rendezvous.
    """

    def __init__(self, lane: ServingLane, purpose: str = "") -> None:
        self._lane = lane
        self._purpose = purpose
        self._opened: Future[OpenRendezvous] = Future()
        self._others: dict[str, OpenRendezvous] = {}  # by purpose, until they are complete or have failed
        self._answering = asyncio.Semaphore(ANSWERS)
        self._admit: Future[Admit] = Future()  # only for a dynamic group
        lane.serve(JOIN, self._serve)

    @classmethod
    def on(cls, lanes: list[Lane], purpose: str = "") -> RendezvousHost:
        """Return a host on the gRPC lane of these lanes.

        Raises:
            RendezvousError: there is none.
        """
        lane = next((lane for lane in lanes if isinstance(lane, ServingLane)), None)
        if lane is None:
            raise RendezvousError(
                "others join here over gRPC; keep 'grpc' among lanes=, or give a world_size and use file://"
            )
        return cls(lane, purpose)

    def wait(self, me: WorkerRecord, world_size: int, timeout: float) -> WorkerRecords:
        """Open the rendezvous and wait until all have joined, up to ``timeout`` seconds.

        Args:
            me: record of this worker.
            world_size: number of workers.
            timeout: seconds to wait for all.

        Raises:
            RendezvousError: a worker did not join in time, or two contradict each other.
        """
        own = OpenRendezvous(world_size)
        if world_size == 0:
            self._opened.set_result(own)
            return WorkerRecords.of([me])
        own.join(me, world_size)
        self._opened.set_result(own)
        now = time.monotonic()
        deadline, notices = now + timeout, WaitNotices(now)
        while (now := time.monotonic()) < deadline:
            try:
                return own.closed.wait(min(notices.pause(now), deadline - now))
            except TimeoutError:
                if notices.due(time.monotonic()):
                    logger.warning("worker %r waits for the others: %s", me.name, own.members.missing())
        own.expire(timeout, self._remedy())
        return own.closed.wait(0)

    def _remedy(self) -> str:
        if not (refusal := self._lane.last_refusal):
            return "start them all"
        return f"rank 0 refused a joiner at {refusal}; if that was one of them, mend it, else start them all"

    def open_group(self, admit: Admit) -> None:
        """Let workers join the dynamic group whose first member is this worker."""
        self._admit.set_result(admit)

    async def _serve(self, _: Any, context: Any) -> None:
        # Wait first: the handshake compares the address that the joiner dialed with this worker's record, which has the
        # address only when all lanes listen. A joiner can come sooner.
        own = await self._opened
        handshake = await self._lane.authenticate(context)
        await context.send_initial_metadata(((WELCOME_KEY, handshake.welcome()),))
        if (message := await context.read()) is grpc.aio.EOF:
            return
        request = JoinRequest.FromString(message)
        try:
            if request.purpose != self._purpose:
                reply = await self._serve_other(request, handshake.peer, context)
            elif own.members.world_size == 0:
                records = WorkerRecords.of(await self._admit_late(handshake.peer, request.world_size))
                reply = JoinReply(workers=records.encode()).SerializeToString()
            elif own.members.has_left(handshake.peer):
                return  # without an answer: the joiner, of the next job, tries again until rank 0 has left this job too
            else:
                reply = await self._serve_joiner(own, request, handshake.peer, context)
        except (RendezvousError, AgentClosedError) as error:
            reply = JoinReply(refusal=str(error)).SerializeToString()
        async with self._answering:
            await context.write(reply)

    async def _serve_joiner(
        self, to: OpenRendezvous, request: JoinRequest, worker: WorkerRecord, context: Any, deadline: float = math.inf
    ) -> bytes:
        """Let a worker join, and return the answer when all have."""
        try:
            to.join(worker, request.world_size, context)
            await self._send_notices(to, request.timeout, worker, context, deadline)
            return await to.answer()
        except asyncio.CancelledError:  # its connection ended
            if to.members.forget(worker, context) and deadline == math.inf:  # elsewhere this host may be about to close
                logger.warning("worker %r left before all had joined; another may join in its place", worker.name)
            raise

    async def _serve_other(self, request: JoinRequest, worker: WorkerRecord, context: Any) -> bytes:
        """Let a worker join a rendezvous of another purpose than this host's own."""
        if request.world_size == 0:
            raise RendezvousError(
                f"worker {worker.name!r} wants to begin a dynamic group where a process group has come together; give "
                f"init_rpc another init_method=, or a world_size="
            )
        other = self._others.setdefault(request.purpose, OpenRendezvous(request.world_size))
        try:
            return await self._serve_joiner(other, request, worker, context, time.monotonic() + request.timeout)
        finally:
            over = other.closed.done() or not other.members.workers()
            if over and self._others.get(request.purpose) is other:
                del self._others[request.purpose]

    async def _admit_late(self, worker: WorkerRecord, world_size: int) -> list[WorkerRecord]:
        if world_size != 0:
            raise RendezvousError(
                f"worker {worker.name!r} says world_size={world_size}, and rank 0 none: its group is dynamic; give all the same"
            )
        return await (await self._admit)(worker)

    async def _send_notices(
        self, to: OpenRendezvous, seconds: float, worker: WorkerRecord, context: Any, deadline: float
    ) -> None:
        """Tell one joiner of each host now and then who is missing, until the rendezvous is closed, by this at the deadline."""
        closed = asyncio.get_running_loop().create_task(_wait_until_closed(to))
        notices = WaitNotices(time.monotonic())
        try:
            while True:
                now = time.monotonic()
                if (await asyncio.wait([closed], timeout=min(notices.pause(now), max(deadline - now, 0.0))))[0]:
                    return
                if time.monotonic() >= deadline:
                    to.expire(seconds, self._remedy())
                elif notices.due(time.monotonic()) and to.members.speaks_for_its_host(worker):
                    await context.write(JoinReply(waiting=to.members.missing()).SerializeToString())
        finally:
            closed.cancel()


async def _wait_until_closed(rendezvous: OpenRendezvous) -> None:
    try:
        await rendezvous.closed
    except RendezvousError:
        pass  # ``answer`` raises it for every joiner


def join(
    me: Credentials, address: str, world_size: int, timeout: float, keepalive: float, purpose: str = ""
) -> WorkerRecords:
    """Dial rank 0 at ``address``, join, and wait for the records of all (``Rendezvous.join``).

    Args:
        me: the worker that joins.
        address: where rank 0 listens.
        world_size: number of workers.
        timeout: seconds to wait for all.
        keepalive: seconds of silence after which a connection asks whether its peer is there.
        purpose: of the rendezvous.

    Raises:
        RendezvousError: no worker is the host there, a worker did not join, or the host refuses.
        AuthenticationError: the process that answers there does not know this job's secret.
    """
    loop = acquire_loop()
    try:
        return loop.run(Joining(me, address, world_size, timeout, keepalive, purpose).run())
    finally:
        release_loop()


def failure_of(error: Exception) -> str:
    """Return the reason in words: asyncio's text of a refused connection has the number of the error, and the address again."""
    number = getattr(error, "errno", None) or 0
    return os.strerror(number) if number > 0 else str(error) or SILENT


class Joining:
    """Joiner's attempts to join, until one succeeds or the time is over.

    Args:
        me, address, world_size, timeout, keepalive, purpose: as for ``join``.
        host: the worker that should answer; by default any that listens at the address.
    """

    def __init__(
        self,
        me: Credentials,
        address: str,
        world_size: int,
        timeout: float,
        keepalive: float,
        purpose: str = "",
        host: WorkerRecord = ANY_WORKER,
    ) -> None:
        self._me = me
        self._host = host
        self._purpose = purpose
        self._options = options_for(keepalive)
        self._address = address
        self._world_size = world_size
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._notices = WaitNotices(time.monotonic())

    async def run(self) -> WorkerRecords:
        """Join, and return the records of all; try again until the time is over."""
        reason = ""
        while (left := self._deadline - time.monotonic()) > 0:
            try:
                return await within(left + TCP_GRACE_SECONDS, self.attempt())
            except AuthenticationError:
                raise  # waiting does not help
            except (OSError, TimeoutError, asyncio.TimeoutError) as error:
                reason = failure_of(error)
            if self._notices.due(time.monotonic()):
                self._notice(f"it does not answer ({reason})")
            await asyncio.sleep(min(TCP_RETRY_SECONDS, max(left, 0)))
        raise RendezvousError(
            f"rank 0 did not answer at {self._address} within {self._timeout:g} s ({reason}); is it running, and are "
            f"MASTER_ADDR and MASTER_PORT (or init_method=) the same for all?"
        )

    async def attempt(self) -> WorkerRecords:
        """Try to join once.

        Raises:
            OSError: the connection could not be made, or it broke.
            RendezvousError, AuthenticationError: as for ``join``.
        """
        tls = self._me.tls
        name = tls.name_of(self._host.certificate_name, host_of(self._address)) if tls else ""
        channel = open_channel(self._address, tls, name, self._options)
        try:
            await connect(channel, self._address, tls, name, self._timeout)
            shown = tls.fingerprint if tls else b""
            handshake = self._me.dialer_handshake(self._host.identity, f"grpc://{self._address}", shown)
            stream = await introduce(channel, JOIN, handshake)
            left = max(self._deadline - time.monotonic(), 0.0)
            request = JoinRequest(world_size=self._world_size, purpose=self._purpose, timeout=left)
            await stream.write(request.SerializeToString())
            reply = await self._reply(stream)
        except grpc.aio.AioRpcError as error:
            raise translate(error, self._address) from error
        finally:
            await channel.close()
        if reply.refusal:
            raise RendezvousError(reply.refusal)
        return WorkerRecords.decode(reply.workers)

    async def _reply(self, stream: Any) -> JoinReply:
        while (answer := await stream.read()) is not grpc.aio.EOF:
            reply = JoinReply.FromString(answer)
            if not reply.waiting:
                return reply
            self._notice(reply.waiting)
        raise ConnectionResetError(
            "it closed the connection before all had joined: its process died, or is still in the job before"
        )

    def _notice(self, text: str) -> None:
        logger.warning("worker %r waits for rank 0 at %s: %s", self._me.record.name, self._address, text)
