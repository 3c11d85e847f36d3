"""gRPC server of a lane: it takes streams of the registered methods, and ends all others.

grpc.aio decodes the name of every method that is not registered, in the loop that takes all streams. A name that is no UTF-8
ends that loop, and with it the server and all its connections. So a stranger could end a job with one stream (seen in grpc
1.85). Streams of registered methods are recognized in gRPC's core, so the name of another method is not decoded here.
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
    """Inner server of grpc. ``_request_call`` asks gRPC's core for streams of methods that are not registered."""

    async def _request_call(self) -> None:
        while True:
            await super()._request_call()  # the stream ends, because no object refers to it


class _Server(_server.Server):  # type: ignore[misc]  # grpc has no types
    def __init__(self, options: Options) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = _RegisteredOnly(self._loop, None, (), None, tuple(options), None)


def make_server(options: Options, services: Services) -> Any:
    """Return a server of these services. Call this on the loop that will run the server."""
    try:
        server: Any = _Server(options)
        for service, methods in services.items():
            server.add_registered_method_handlers(service, dict(methods))
    except (AttributeError, TypeError):  # an older grpc, which decodes the name in the stream's own task
        server = grpc.aio.server(options=options)
        for service, methods in services.items():
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    return server
