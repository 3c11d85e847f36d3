"""Server of metrics by HTTP. Its clients are few, and each is cut off when it takes too long."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

SCRAPE_SECONDS = 20.0  # for a client to send its request, be answered, and take the answer
MOST_SCRAPERS = 16  # at a time: each has a thread
CUT_SECONDS = 1.0  # for the thread of a client that is cut off to end


class MetricsServer:
    """Server of metrics by HTTP, in a thread of its own. ``rpc.serve_metrics`` makes one.

    Args:
        collector: a collector of ``prometheus_client``, such as ``WorkerMetrics``.
        port: 0 for a free one.
        host: address at which it listens.

    Attributes:
        url: where Prometheus finds the metrics.
    """

    def __init__(self, collector: object, port: int, host: str) -> None:
        from prometheus_client import CollectorRegistry, make_wsgi_app

        registry: Any = CollectorRegistry()
        registry.register(collector)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        kind = _Server6 if found[0][0] == socket.AF_INET6 else _Server
        self._server = make_server(host, port, make_wsgi_app(registry), kind, _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="telegrad-metrics", daemon=True)
        self._thread.start()
        at = f"[{host}]" if ":" in host else host
        self.port: int = self._server.server_port
        self.url = f"http://{at}:{self.port}/metrics"
        self._closing = threading.Lock()
        self._process_id = os.getpid()

    def close(self) -> None:
        """End the server. Closing again does nothing."""
        if os.getpid() != self._process_id:  # a forked child has no thread of it, and shutdown() would wait for one
            self._server.socket.close()
        elif self._closing.acquire(blocking=False):
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Server(ThreadingMixIn, WSGIServer):
    """Server with a thread for each client."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        self._scrapers: dict[socket.socket, float] = {}  # when each is cut off, the oldest first
        self._changed = threading.Condition()  # guards the table; notified when a client's thread ends
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client in a thread. If there are too many, the oldest is cut off; the new one is if that takes too long."""
        with self._changed:
            if not self._has_room():
                _cut_off(next(iter(self._scrapers)))
            admitted = self._changed.wait_for(self._has_room, CUT_SECONDS)
            if admitted:
                self._scrapers[request] = time.monotonic() + SCRAPE_SECONDS
        if admitted:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def _has_room(self) -> bool:
        return len(self._scrapers) < MOST_SCRAPERS

    def service_actions(self) -> None:
        """Cut off those whose time is over: the server's thread calls this every half second."""
        now = time.monotonic()
        with self._changed:
            for each in [each for each, end in self._scrapers.items() if end <= now]:
                _cut_off(each)

    def shutdown_request(self, request: Any) -> None:
        """End a client's connection."""
        super().shutdown_request(request)
        with self._changed:
            self._scrapers.pop(request, None)
            self._changed.notify()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client has gone, or was cut off."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing of a request."""


def _cut_off(client: socket.socket) -> None:
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
