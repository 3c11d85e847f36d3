"""Program that sends messages to itself by gRPC, and tells how often gRPC's event engine was switched to meanwhile."""

import asyncio
from pathlib import Path

import telegrad.rpc  # noqa: F401  # imports gRPC with our settings

import grpc  # isort: skip

MESSAGES = 200


def switches():
    """Return how often the threads of the event engine have slept."""
    statuses = [each.read_text() for each in Path("/proc/self/task").glob("*/status")]
    engine = [text for text in statuses if text.startswith("Name:\tevent_engine")]
    return sum(int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for text in engine)


async def echo(_, context):
    while (message := await context.read()) is not grpc.aio.EOF:
        await context.write(message)


async def main():
    server = grpc.aio.server()
    handlers = {"Echo": grpc.stream_stream_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stream = channel.stream_stream("/test/Echo")()
        await stream.write(b"x")
        await stream.read()
        before = switches()
        for _ in range(MESSAGES):
            await stream.write(b"x")
            await stream.read()
        print(switches() - before)
        await stream.done_writing()
    await server.stop(0)


asyncio.run(main())
