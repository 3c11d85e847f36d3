"""TCP relays between workers: one for each directed link, which can be delayed, silenced, cut and reset.

A connection that worker 0 dials to worker 1 goes through link (0, 1); what 1 dials to 0 goes through (1, 0). A relay shows
its dialer what the target shows the relay: when the target does not listen any more, the relay stops listening too, so
that the next dial is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ...launcher.environment import LOOPBACK_ADDRESS, reserve_port
from ...rpc.threads.ioloop import first_of

CHUNK_BYTES = 1 << 18
QUEUED_CHUNKS = 16
Link = tuple[int, int]


class Relay:
    """Relay of one link: it works inside ``async with``; its methods run on its loop."""

    def __init__(self, target: int) -> None:
        self.delay = 0.0
        self._target = target
        self._reserved = reserve_port()  # kept, so that no other process is given the port
        self.port: int = self._reserved.getsockname()[1]
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._cut = False
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._serve, LOOPBACK_ADDRESS, self.port, limit=CHUNK_BYTES)
        return self

    def silence(self) -> None:
        """Forward nothing until ``heal``; connections stay, new ones are accepted and wait."""
        self._flowing.clear()

    def cut(self) -> None:
        """Break all connections, and each new one at once, until ``heal``."""
        self._cut = True
        self.reset()

    def reset(self) -> None:
        """Break all connections; new ones work."""
        for task in list(self._connections):
            task.cancel()

    def heal(self) -> None:
        """Work as at the beginning."""
        self.delay = 0.0
        self._cut = False
        self._flowing.set()

    async def __aexit__(self, *_: object) -> None:
        self._stop_listening()
        tasks = list(self._connections)
        self.reset()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._reserved.close()

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: asyncio.Task[None] = asyncio.current_task()  # type: ignore[assignment]
        self._connections.add(task)
        try:
            await self._join(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # either end is gone, or the link broke: the dialer sees its connection end
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            return
        await self._flowing.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK_ADDRESS, self._target, limit=CHUNK_BYTES)
        except ConnectionRefusedError:
            self._stop_listening()
            return
        try:
            await first_of(self._forward(reader, far_writer), self._forward(far_reader, writer))
        finally:
            far_writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy until the reader ends; chunks leave in order, each ``delay`` after it came."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(QUEUED_CHUNKS)
        await first_of(self._read(reader, queue), self._write(writer, queue))

    async def _read(self, reader: asyncio.StreamReader, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
        loop = asyncio.get_running_loop()
        while chunk := await reader.read(CHUNK_BYTES):
            await queue.put((loop.time() + self.delay, chunk))
        await queue.put((loop.time() + self.delay, b""))
        await asyncio.Event().wait()  # the writer ends it, when all has left

    async def _write(self, writer: asyncio.StreamWriter, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, chunk = await queue.get()
            await asyncio.sleep(max(due - loop.time(), 0.0))
            await self._flowing.wait()
            if not chunk:
                return
            writer.write(chunk)
            await writer.drain()


class Relays:
    """Relays of all links of a job whose workers listen at ``ports``, by rank. They work inside ``async with``."""

    def __init__(self, ports: Iterable[int]) -> None:
        listening = list(enumerate(ports))
        self._relays: dict[Link, Relay] = {
            (dialer, rank): Relay(port) for rank, port in listening for dialer, _ in listening if dialer != rank
        }

    async def __aenter__(self) -> Relays:
        for relay in self._relays.values():
            await relay.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for relay in self._relays.values():
            await relay.__aexit__()

    def port(self, dialer: int, target: int) -> int:
        """Return the address where ``dialer`` reaches ``target``."""
        return self._relays[dialer, target].port

    def on(self, links: Iterable[Link]) -> list[Relay]:
        """Return the relays of those links."""
        return [self._relays[link] for link in links]

    def links(self) -> list[Link]:
        """Return all links."""
        return list(self._relays)
