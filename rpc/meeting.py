"""The meeting over gRPC: rank 0 keeps the roster, the others join over a stream that begins with the usual handshake."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc

from ..core.errors import AuthenticationError, RendezvousError
from ..core.futures import Future
from ..proto.telegrad_pb2 import Admission, JoinReply, JoinRequest, WorkerRecord
from .agent import Agent
from .lanes.grpc import GrpcLane, greet, introduce, options_for, probe, translate
from .lanes.ioloop import acquire_loop, release_loop
from .roster import Roster

JOIN = "/telegrad.Rendezvous/Join"
RETRY_SECONDS = 0.05
GRACE_SECONDS = 2.0  # the host's answer, which knows who is missing, should beat the guest's own deadline


class MeetingHost:
    """Rank 0's side. Registered with the lane before it listens; guests that come early wait."""

    def __init__(self, lane: GrpcLane) -> None:
        self._opened: Future[tuple[Agent, Roster]] = Future()
        self._closed: Future[list[WorkerRecord]] = Future()
        handler = grpc.stream_stream_rpc_method_handler(self._serve)
        service, method = JOIN.strip("/").split("/")
        lane.add_service(grpc.method_handlers_generic_handler(service, {method: handler}))

    def meet(self, agent: Agent, world_size: int, timeout: float) -> list[WorkerRecord]:
        """Open the meeting and wait until everybody came."""
        roster = Roster(world_size)
        self._join(roster, agent.record, world_size)
        self._opened.set_result((agent, roster))
        try:
            return self._closed.wait(timeout)
        except TimeoutError:
            self._close(roster, f"the rendezvous did not fill within {timeout:g} s: {roster.missing()}; start them all")
        return self._closed.wait(0)

    async def _serve(self, _: Any, context: Any) -> None:
        agent, roster = await self._opened
        handshake = agent.acceptor_handshake()
        if not await greet(context, handshake):
            return
        await context.write(Admission().SerializeToString())
        request = JoinRequest.FromString(await context.read())
        try:
            self._join(roster, request.worker, request.world_size)
            reply = JoinReply(workers=await self._closed)
        except RendezvousError as error:
            reply = JoinReply(refusal=str(error))
        await context.write(reply.SerializeToString())

    def _join(self, roster: Roster, worker: WorkerRecord, world_size: int) -> None:
        try:
            roster.join(worker, world_size)
        except RendezvousError as error:
            self._close(roster, str(error))
            raise
        if roster.complete:
            self._closed.set_result(roster.workers())

    def _close(self, roster: Roster, failure: str) -> None:
        roster.failure = roster.failure or failure
        if not self._closed.done():
            self._closed.set_exception(RendezvousError(failure))


def attend(agent: Agent, address: str, world_size: int, timeout: float) -> list[WorkerRecord]:
    """A guest's side: find rank 0, join, and wait for the list of all.

    Raises:
        RendezvousError: nobody hosts the meeting, somebody did not come, or the host refuses.
        AuthenticationError: whoever listens there does not know this job's secret.
    """
    loop = acquire_loop()
    try:
        return loop.run(_attend(agent, address, world_size, time.monotonic() + timeout, timeout))
    finally:
        release_loop()


async def _attend(agent: Agent, address: str, world_size: int, deadline: float, timeout: float) -> list[WorkerRecord]:
    reason: Exception | None = None
    while (left := deadline - time.monotonic()) > 0:
        try:
            return await asyncio.wait_for(_join_once(agent, address, world_size, left), left + GRACE_SECONDS)
        except AuthenticationError:
            raise  # waiting does not help
        except (OSError, TimeoutError, asyncio.TimeoutError) as error:
            reason = error
        await asyncio.sleep(min(RETRY_SECONDS, max(left, 0)))
    raise RendezvousError(
        f"rank 0 did not answer at {address} within {timeout:g} s ({reason}); is it running, and are MASTER_ADDR and "
        f"MASTER_PORT (or init_method=) the same for all?"
    )


async def _join_once(agent: Agent, address: str, world_size: int, left: float) -> list[WorkerRecord]:
    await probe(address)
    channel = grpc.aio.insecure_channel(address, options=options_for(agent.keepalive))
    try:
        stream: Any = channel.stream_stream(JOIN)()
        await introduce(stream, agent.dialer_handshake(b""))
        request = JoinRequest(worker=agent.record, world_size=world_size, timeout=left)
        await stream.write(request.SerializeToString())
        answer = await stream.read()
        if answer is grpc.aio.EOF:
            raise ConnectionResetError("rank 0 hung up: its process died, or closed, before everybody came")
        reply = JoinReply.FromString(answer)
    except grpc.aio.AioRpcError as error:
        raise translate(error, address) from error
    finally:
        await channel.close()
    if reply.refusal:
        raise RendezvousError(reply.refusal)
    return list(reply.workers)
