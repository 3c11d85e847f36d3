"""``telegrad metrics``: metrics of a running job for Prometheus, from outside its workers."""

import threading
from functools import partial

from ...rpc.exporting import METRIC_PARTS, MetricsServer, WorkerMetrics
from ...rpc.observing import Observation
from .jobs import NoJobError, choose_job
from .observing import observe_job


def serve_job_metrics(key: str | None, port: int, host: str, timeout: float) -> None:
    """Print the address of the metrics, and serve them until Ctrl-C. A job may end, and the next begin, meanwhile.

    Args:
        key: the beginning of a job's id; None for the latest of this folder, at each scrape.
        port: 0 for a free one.
        host: address at which it listens.
        timeout: seconds that a worker has to answer.

    Raises:
        ImportError: the extra is not installed.
        OSError: the port is in use, or the address is not this machine's.
    """
    with MetricsServer(WorkerMetrics(partial(_observe, key, timeout)), port, host) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


def _observe(key: str | None, timeout: float) -> list[Observation]:
    try:
        return observe_job(choose_job(key), timeout, parts=METRIC_PARTS)
    except (NoJobError, PermissionError):
        return []
