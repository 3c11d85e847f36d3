"""Log of a rendezvous in etcd, over its JSON gateway (version 3.4 or newer). Each line is a key, in order of creation.

Lines have a lease: etcd deletes them some time after the rendezvous, and then its name can be used again. ``etcds://`` takes
its certificates from etcdctl's variables: ``ETCDCTL_CACERT``, ``ETCDCTL_CERT``, ``ETCDCTL_KEY``.
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import time
import urllib.request
from base64 import b64decode, b64encode
from typing import Any

from ...base.errors import RendezvousError

ETCD_POLL_SECONDS = 0.1
ETCD_RETRY_SECONDS = 0.2
ETCD_SECONDS = 5.0
LEASE_SECONDS = 600  # added to the timeout of the rendezvous
ETCD_PREFIX = "telegrad/"


class EtcdLog:
    """Log in etcd.

    Args:
        servers: "host:port" of etcd's members; the first that answers is used.
        name: name of the rendezvous, different for each job.
        timeout: seconds of the whole rendezvous.
        tls: use TLS.
    """

    pause = ETCD_POLL_SECONDS
    remedy = "name another rendezvous, as in etcd://host:2379/job-2"

    def __init__(self, servers: list[str], name: str, timeout: float, tls: bool = False) -> None:
        self.name = f"the rendezvous {name!r} in etcd at {', '.join(servers)}"
        self._bases = [f"{'https' if tls else 'http'}://{server}/v3/" for server in servers]
        self._prefix = f"{ETCD_PREFIX}{name}/"
        self._next = 1  # revision of etcd from which lines have not been read
        self._lease_seconds = int(timeout) + LEASE_SECONDS
        self._deadline = time.monotonic() + timeout
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if tls:
            handlers.append(urllib.request.HTTPSHandler(context=_context()))
        self._opener = urllib.request.build_opener(*handlers)

    def append(self, line: str) -> None:
        lease = self._ask("lease/grant", {"TTL": self._lease_seconds})["ID"]
        key = f"{self._prefix}{secrets.token_hex(16)}"
        self._ask("kv/put", {"key": _encoded(key), "value": _encoded(line), "lease": lease})

    def read(self) -> list[str]:
        found = self._ask(
            "kv/range",
            {
                "key": _encoded(self._prefix),
                "range_end": _encoded(self._prefix[:-1] + chr(ord("/") + 1)),
                "sort_order": "ASCEND",
                "sort_target": "CREATE",
                "min_create_revision": self._next,
            },
        )
        lines = found.get("kvs", [])
        if lines:
            self._next = int(lines[-1]["create_revision"]) + 1
        return [b64decode(line["value"]).decode(errors="replace") for line in lines]

    def _ask(self, what: str, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the first server that gives one. A request may reach etcd twice, which does no harm."""
        content = json.dumps(question).encode()
        while True:
            problems = []
            for base in self._bases:
                try:
                    with self._opener.open(base + what, content, timeout=ETCD_SECONDS) as answer:
                        found: dict[str, Any] = json.load(answer)
                        return found
                except (OSError, ValueError) as error:  # urllib's errors are subclasses of OSError
                    problems.append(f"{base}: {error}")
            if time.monotonic() > self._deadline:
                raise RendezvousError(
                    f"etcd did not answer ({'; '.join(problems)}); is it running there, version 3.4 or newer, and does it want "
                    f"TLS (etcds://)?"
                )
            time.sleep(ETCD_RETRY_SECONDS)


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _context() -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=os.environ.get("ETCDCTL_CACERT"))
        if certificate := os.environ.get("ETCDCTL_CERT"):
            context.load_cert_chain(certificate, os.environ.get("ETCDCTL_KEY"))
    except OSError as error:
        raise RendezvousError(
            f"the certificates of etcds:// cannot be used ({error}); check ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY"
        ) from error
    return context
