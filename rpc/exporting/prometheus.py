"""Metrics for Prometheus: a collector for a registry of the program's own, and a server. They need an extra."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.errors import ArgumentKindError
from ..current import current_agent
from ..links.worker_info import WorkerInfo
from ..observing.asking import observe
from ..observing.records import Observation
from ..options import check_timeout

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from ..agent import Agent
    from .metrics_server import MetricsServer

LOOPBACK = "127.0.0.1"
MOST_PORT = 65535
METRIC_PARTS = ("owned", "held", "contexts", "links", "logged", "loops")  # of an observation
Worker: TypeAlias = str | int | WorkerInfo
Workers: TypeAlias = Worker | Iterable[Worker] | None


def metrics(workers: Workers = None, timeout: float = 5.0) -> WorkerMetrics:
    """Return a collector of metrics, for a registry of ``prometheus_client`` that the program has.

    Args:
        workers: those that it observes at each scrape: a worker (name, rank or ``WorkerInfo``), or some; this one by default.
        timeout: seconds that a worker has to answer; one that does not has only ``telegrad_up`` 0.

    Raises:
        ImportError: the extra is not installed.
        UnknownWorkerError: there is no such worker.
        ValueError: the time-out is not above 0.
    """
    agent = current_agent()
    if check_timeout("timeout=", timeout) == 0:
        raise ValueError("timeout=0 leaves no time to answer; give the seconds that a worker has")
    if workers is None:
        workers = agent.name
    elif not isinstance(workers, (str, int)) and isinstance(workers, Iterable):
        workers = list(workers)
    collector = WorkerMetrics(partial(_observed, agent, workers, timeout))
    _check(agent, workers)
    return collector


def serve_metrics(port: int = 0, host: str = LOOPBACK, workers: Workers = None, timeout: float = 5.0) -> MetricsServer:
    """Serve metrics for Prometheus by HTTP, until the server is closed or the process ends.

    There is no password: with another ``host`` than the loopback, all that reach the port can read names of workers,
    functions and logged values.

    Args:
        port: of this machine; 0 takes a free one.
        host: address at which it listens.
        workers, timeout: as for ``metrics``.

    Returns:
        The server, with its ``url``; it is also a context manager.

    Raises:
        ImportError: the extra is not installed.
        UnknownWorkerError: there is no such worker.
        ValueError: the port or the time-out is not possible.
        OSError: the port is in use, or the address is not this machine's.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= MOST_PORT:
        raise ValueError(f"port={port!r} is no port: give a number up to {MOST_PORT}, or 0 for a free one")
    if not isinstance(host, str):
        raise ArgumentKindError(f"host must be a name or an address of this machine; you gave {host!r}")
    collector = metrics(workers, timeout)
    from .metrics_server import MetricsServer  # here: few workers are HTTP servers

    return MetricsServer(collector, port, host)


def _check(agent: Agent, workers: Any) -> None:
    one = isinstance(workers, (str, int)) or not isinstance(workers, list)
    for each in [workers] if one else workers:
        agent.peers.find(each)


def _observed(agent: Agent, workers: Any, timeout: float) -> list[Observation]:
    if agent.closed:
        return [Observation(agent.name, agent.number, agent.rank, error=agent.closed)]
    with agent.use():
        return observe(workers, timeout, METRIC_PARTS)


class WorkerMetrics:
    """Collector for Prometheus: observes workers at each scrape. ``rpc.metrics`` makes one.

    Args:
        observe: returns what the workers do.
    """

    def __init__(self, observe: Callable[[], list[Observation]]) -> None:
        try:
            from .metric_families import metric_families
        except ImportError as error:
            raise ImportError(
                f"metrics need the package prometheus-client ({error}); pip install prometheus-client",
                name="prometheus_client",
            ) from None
        self._families = metric_families
        self._observe = observe

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of now."""
        return self._families(self._observe())

    def describe(self) -> Iterable[Metric]:
        """Return no metrics: so that a registry does not collect them to learn their names."""
        return []
