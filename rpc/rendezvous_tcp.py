"""Rendezvous over gRPC: rank 0 keeps the list of members, the others join on a stream that begins with the handshake."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from ..core.errors import AgentClosedError, AuthenticationError, RendezvousError
from ..core.futures import Future, complete_once
from ..proto.rpc_pb2 import JoinReply, JoinRequest, WorkerRecord
from .addresses import host_of
from .lanes.grpc import GrpcLane, options_for
from .lanes.grpc_channel import connect, open_channel
from .lanes.grpc_handshake import WELCOME_KEY, introduce, translate
from .lanes.ioloop import acquire_loop, release_loop, within
from .members import MemberList
from .notices import Notices
from .security import Credentials
from .worker_records import WorkerRecords

logger = logging.getLogger("telegrad.rpc")
JOIN = "/telegrad.Rendezvous/Join"
RETRY_SECONDS = 0.05
SILENT = "it took the connection, and said nothing in time"
Admit = Callable[[WorkerRecord], Awaitable[list[WorkerRecord]]]  # lets a worker join, and returns the records of all
ANSWERS = 64  # answers that may be on their way at the same time: each is as long as the member list
GRACE_SECONDS = 2.0  # a joiner waits longer by this, for the host's answer: it says which workers are missing


class RendezvousHost:
    """Rank 0's part of the rendezvous. It is registered with the lane before the lane listens; joiners that come early wait."""

    def __init__(self, lane: GrpcLane) -> None:
        self._lane = lane
        self._opened: Future[MemberList] = Future()
        self._closed: Future[WorkerRecords] = Future()
        self._answer: bytes | None = None  # the same for all joiners, once all have joined
        self._answering = asyncio.Semaphore(ANSWERS)
        self._admit: Future[Admit] = Future()  # only for a dynamic group
        lane.serve(JOIN, self._serve)

    def wait(self, me: WorkerRecord, world_size: int, timeout: float) -> WorkerRecords:
        """Open the rendezvous and wait until all have joined, up to ``timeout`` seconds.

        Args:
            me: record of this worker.
            world_size: number of workers.
            timeout: seconds to wait for all.

        Raises:
            RendezvousError: a worker did not join in time, or two contradict each other.
        """
        members = MemberList(world_size)
        if world_size == 0:
            self._opened.set_result(members)
            return WorkerRecords.of([me])
        self._join(members, me, world_size)
        self._opened.set_result(members)
        now = time.monotonic()
        deadline, notices = now + timeout, Notices(now)
        while (now := time.monotonic()) < deadline:
            try:
                return self._closed.wait(min(notices.pause(now), deadline - now))
            except TimeoutError:
                if notices.due(time.monotonic()):
                    logger.warning("worker %r waits for the others: %s", me.name, members.missing())
        self._close(members, f"the rendezvous did not fill within {timeout:g} s: {members.missing()}; {self._remedy()}")
        return self._closed.wait(0)

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
        members = await self._opened
        handshake = await self._lane.authenticate(context)
        await context.send_initial_metadata(((WELCOME_KEY, handshake.welcome()),))
        if (request := await context.read()) is grpc.aio.EOF:
            return
        try:
            world_size = JoinRequest.FromString(request).world_size
            if members.world_size == 0:
                records = WorkerRecords.of(await self._admit_late(handshake.peer, world_size))
                reply = JoinReply(workers=records.encode()).SerializeToString()
            elif members.has_left(handshake.peer):
                return  # without an answer: the joiner, of the next job, tries again until rank 0 has left this job too
            else:
                self._join(members, handshake.peer, world_size, context)
                await self._send_notices(members, context)
                reply = await self._members()
        except asyncio.CancelledError:  # its connection ended
            if members.leave(handshake.peer, context):
                logger.warning(
                    "worker %r left before all had joined; another may join in its place", handshake.peer.name
                )
            raise
        except (RendezvousError, AgentClosedError) as error:
            reply = JoinReply(refusal=str(error)).SerializeToString()
        async with self._answering:
            await context.write(reply)

    async def _members(self) -> bytes:
        """Return the answer with the records of all. It is made once, because it may go to thousands of joiners."""
        records = await self._closed
        if self._answer is None:
            self._answer = JoinReply(workers=records.encode()).SerializeToString()
        return self._answer

    async def _admit_late(self, worker: WorkerRecord, world_size: int) -> list[WorkerRecord]:
        if world_size != 0:
            raise RendezvousError(
                f"worker {worker.name!r} says world_size={world_size}, and rank 0 none: its group is dynamic; give all the same"
            )
        return await (await self._admit)(worker)

    async def _send_notices(self, members: MemberList, context: Any) -> None:
        """Tell a joiner now and then who is missing, until the rendezvous is closed."""
        closed = asyncio.get_running_loop().create_task(self._wait_until_closed())
        notices = Notices(time.monotonic())
        try:
            while not (await asyncio.wait([closed], timeout=notices.pause(time.monotonic())))[0]:
                if notices.due(time.monotonic()):
                    await context.write(JoinReply(waiting=members.missing()).SerializeToString())
        finally:
            closed.cancel()

    async def _wait_until_closed(self) -> None:
        try:
            await self._closed
        except RendezvousError:
            pass  # ``_members`` raises it for every joiner

    def _join(self, members: MemberList, worker: WorkerRecord, world_size: int, context: object = None) -> None:
        try:
            members.join(worker, world_size, context)
        except RendezvousError as error:
            self._close(members, str(error))
            raise
        if members.complete:
            complete_once(self._closed, WorkerRecords.of(members.workers()))

    def _close(self, members: MemberList, failure: str) -> None:
        members.failure = members.failure or failure
        complete_once(self._closed, error=RendezvousError(failure))  # a joiner may have completed it at this moment


def join(me: Credentials, address: str, world_size: int, timeout: float, keepalive: float) -> WorkerRecords:
    """Dial rank 0 at ``address``, join, and wait for the records of all (``Rendezvous.join``).

    Args:
        me: the worker that joins.
        address: where rank 0 listens.
        world_size: number of workers.
        timeout: seconds to wait for all.
        keepalive: seconds of silence after which a connection asks whether its peer is there.

    Raises:
        RendezvousError: nobody is the host there, a worker did not join, or the host refuses.
        AuthenticationError: the process that answers there does not know this job's secret.
    """
    loop = acquire_loop()
    try:
        return loop.run(_Joining(me, address, world_size, timeout, keepalive).run())
    finally:
        release_loop()


def _reason(error: Exception) -> str:
    """Return the reason in words: asyncio's text of a refused connection has the number of the error, and the address again."""
    number = getattr(error, "errno", None) or 0
    return os.strerror(number) if number > 0 else str(error) or SILENT


class _Joining:
    """Joiner's attempts to join, until one succeeds or the time is over."""

    def __init__(self, me: Credentials, address: str, world_size: int, timeout: float, keepalive: float) -> None:
        self._me = me
        self._options = options_for(keepalive)
        self._address = address
        self._world_size = world_size
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._notices = Notices(time.monotonic())

    async def run(self) -> WorkerRecords:
        reason = ""
        while (left := self._deadline - time.monotonic()) > 0:
            try:
                return await within(left + GRACE_SECONDS, self._attempt())
            except AuthenticationError:
                raise  # waiting does not help
            except (OSError, TimeoutError, asyncio.TimeoutError) as error:
                reason = _reason(error)
            if self._notices.due(time.monotonic()):
                self._notice(f"it does not answer ({reason})")
            await asyncio.sleep(min(RETRY_SECONDS, max(left, 0)))
        raise RendezvousError(
            f"rank 0 did not answer at {self._address} within {self._timeout:g} s ({reason}); is it running, and are "
            f"MASTER_ADDR and MASTER_PORT (or init_method=) the same for all?"
        )

    async def _attempt(self) -> WorkerRecords:
        tls = self._me.tls
        name = tls.name_of("", host_of(self._address)) if tls else ""
        channel = open_channel(self._address, tls, name, self._options)
        try:
            await connect(channel, self._address, tls, name, self._timeout)
            shown = tls.fingerprint if tls else b""
            handshake = self._me.dialer_handshake(b"", f"grpc://{self._address}", shown)
            stream = await introduce(channel, JOIN, handshake)
            await stream.write(JoinRequest(world_size=self._world_size).SerializeToString())
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
            "rank 0 closed the connection before all had joined: its process died, or is still in the job before"
        )

    def _notice(self, text: str) -> None:
        logger.warning("worker %r waits for rank 0 at %s: %s", self._me.record.name, self._address, text)
