"""gRPC server of a lane: it takes streams of the methods that were registered, and ends all others.

grpc.aio decodes the name of every other method in the loop that takes all streams. A name that is no UTF-8 ends that loop, and
with it the server and every connection of the job: one stranger's stream would do (seen in grpc 1.85). Registered methods
are told apart in gRPC's core, so a stream of another method need not be looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from grpc._cython import cygrpc
from grpc.aio import _server

Services = Mapping[str, Mapping[str, Any]]  # handlers by method, by service
Options = Sequence[tuple[str, int]]


class _RegisteredOnly(cygrpc.AioServer):  # type: ignore[misc]  # grpc has no types
    """grpc's inner server, which asks its core for streams of unregistered methods with ``_request_call``."""

    async def _request_call(self) -> None:
        while True:
            await super()._request_call()  # nobody refers to the stream, which ends it


class _Server(_server.Server):  # type: ignore[misc]  # grpc has no types
    def __init__(self, options: Options) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = _RegisteredOnly(self._loop, None, (), None, tuple(options), None)


def make_server(options: Options, services: Services) -> Any:
    """Return a server of these services; call it on the loop that is to run it."""
    try:
        server: Any = _Server(options)
        for service, methods in services.items():
            server.add_registered_method_handlers(service, dict(methods))
    except (AttributeError, TypeError):  # an older grpc, which decodes the name in a task of the stream
        server = grpc.aio.server(options=options)
        for service, methods in services.items():
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    return server
