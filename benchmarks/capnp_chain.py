"""Dependent calls with Cap'n Proto, over links with a delay: run by an interpreter that has ``pycapnp`` (``chains.py``).

It prints the round trips of each way, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import capnp

SCHEMA = """@0xbf5147cbbecf40c1;
interface Number {
  next @0 () -> (number :Number);
  read @1 () -> (value :Int64);
}
"""


def load_schema() -> Any:
    """Return the module of the schema."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "number.capnp"
        path.write_text(SCHEMA)
        return capnp.load(str(path))


SCHEMAS = load_schema()


class Number(SCHEMAS.Number.Server):  # type: ignore[misc, name-defined]
    """Object with a method that returns another one."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    async def next(self, **_: Any) -> Number:
        """Return the next number."""
        return Number(self.number + 1)

    async def read(self, **_: Any) -> int:
        """Return it as an integer."""
        return self.number


async def delayed(port: int, seconds: float) -> int:
    """Forward connections to a port, each byte so many seconds later; return the port to connect to."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while piece := await reader.read(1 << 16):
            loop.call_later(seconds, writer.write, piece)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    found: int = server.sockets[0].getsockname()[1]
    return found


async def one_at_a_time(first: Any, length: int) -> int:
    """Wait for each call before the next."""
    number = first
    for _ in range(length - 1):
        number = (await number.next()).number
    return int((await number.read()).value)


async def chain(first: Any, length: int) -> int:
    """Send all calls at once."""
    number = first
    for _ in range(length - 1):
        number = number.next().number
    return int((await number.read()).value)


async def measure(length: int, round_trip: float) -> dict[str, float]:
    """Return the round trips of each way.

    Args:
        length: how many calls depend on one another.
        round_trip: seconds.
    """

    async def serve(stream: Any) -> None:
        await capnp.TwoPartyServer(stream, bootstrap=Number()).on_disconnect()

    server = await capnp.AsyncIoStream.create_server(serve, "127.0.0.1", 0)
    port = await delayed(server.sockets[0].getsockname()[1], round_trip / 2)
    stream = await capnp.AsyncIoStream.create_connection("127.0.0.1", port)
    first = capnp.TwoPartyClient(stream).bootstrap().cast_as(SCHEMAS.Number)
    await first.read()
    ways: dict[str, Callable[[Any, int], Awaitable[int]]] = {"one call at a time": one_at_a_time, "chain": chain}
    trips = {}
    for name, way in ways.items():
        began = time.perf_counter()
        assert await way(first, length) == length - 1
        trips[name] = (time.perf_counter() - began) / round_trip
    return trips


async def main() -> None:
    """Measure, and print the figures."""
    async with capnp.kj_loop():
        print(json.dumps(await measure(int(sys.argv[1]), float(sys.argv[2]))), flush=True)
        os._exit(0)  # the connections have no other end


if __name__ == "__main__":
    asyncio.run(main())
