"""Observations of workers as metrics of Prometheus. Each has the label ``worker``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from ..observing.records import Observation

COUNTER, GAUGE = CounterMetricFamily, GaugeMetricFamily


class MetricRow(NamedTuple):
    """Metric of the records of one list of an observation, or of the observation itself."""

    kind: Any  # a class of metrics, whose arguments are not those of Metric
    name: str
    text: str
    attribute: str
    labels: tuple[str, ...] = ()  # attributes of the record


OF_WORKER = (
    MetricRow(COUNTER, "calls_made", "Requests that the worker has sent.", "calls_made"),
    MetricRow(COUNTER, "requests_accepted", "Requests that have arrived at the worker.", "requests_accepted"),
    MetricRow(COUNTER, "cpu_seconds", "Processor time of its process.", "cpu_seconds"),
    MetricRow(GAUGE, "memory_bytes", "Resident memory of its process.", "memory_bytes"),
    MetricRow(GAUGE, "spilled_bytes", "Arrays in a file, beyond memory_budget.", "spilled_bytes"),
    MetricRow(GAUGE, "pool_threads", "Threads for user functions, at most.", "pool_threads"),
    MetricRow(GAUGE, "pool_busy_threads", "Threads that run a user function.", "pool_busy"),
    MetricRow(GAUGE, "pool_waiting_requests", "Requests that wait for a thread.", "pool_waiting"),
)
TOTALS = {
    "calls": ("calls_under_way", "Calls that wait for their answers."),
    "requests": ("requests_under_way", "Requests that are not answered."),
    "owned": ("references_owned", "References whose values the worker holds."),
    "held": ("references_held", "References to values of other workers."),
    "contexts": ("contexts", "Live contexts of distributed autograd."),
    "threads": ("threads", "Threads of Python, and coroutines and generators that are suspended."),
}
OF_LINKS = (
    MetricRow(COUNTER, "link_sent_bytes", "Bytes sent, on the connections that are open.", "sent_bytes", ("to",)),
    MetricRow(COUNTER, "link_sent_messages", "Messages sent, likewise.", "sent_messages", ("to",)),
    MetricRow(COUNTER, "link_received_bytes", "Bytes received and used, likewise.", "received_bytes", ("to",)),
    MetricRow(COUNTER, "link_received_messages", "Messages received, likewise.", "received_messages", ("to",)),
    MetricRow(GAUGE, "link_in_flight_bytes", "Bytes sent and not used at the other end.", "in_flight_bytes", ("to",)),
    MetricRow(GAUGE, "link_queued_bytes", "Bytes that wait for room.", "queued_bytes", ("to",)),
    MetricRow(GAUGE, "link_queued_messages", "Messages that wait for room.", "queued_messages", ("to",)),
)
OF_SERIES = (
    MetricRow(GAUGE, "logged_value", "Last value that the program logged by this name.", "last", ("name",)),
    MetricRow(COUNTER, "logged_values", "Values that the program logged by this name.", "count", ("name",)),
    MetricRow(GAUGE, "logged_step", "Step of the last value of this name.", "step", ("name",)),
)
OF_LOOPS = (
    MetricRow(GAUGE, "loop_done_items", "Items that a loop has finished.", "done", ("description",)),
    MetricRow(GAUGE, "loop_items", "Items of a loop, if their number is known.", "total", ("description",)),
)


def metric_families(observations: Sequence[Observation]) -> list[Metric]:
    """Return the metrics of these workers; a worker that did not answer has only ``telegrad_up`` 0."""
    well = [each for each in observations if not each.error]
    up = _family(GAUGE, "up", "1 if the worker has answered, 0 if not.", ())
    for each in observations:
        up.add_metric([_text(each.worker)], 0.0 if each.error else 1.0)
    rows = [_metric(row, [(each, each) for each in well]) for row in OF_WORKER]
    rows += [_total(name, *described, well) for name, described in TOTALS.items()]
    for table, place in ((OF_LINKS, "links"), (OF_SERIES, "logged"), (OF_LOOPS, "loops")):
        rows += [_metric(row, [(each, record) for each in well for record in getattr(each, place)]) for row in table]
    return [up, *rows]


def _metric(row: MetricRow, records: Iterable[tuple[Observation, Any]]) -> Metric:
    family, value_of, seen = _family(row.kind, row.name, row.text, row.labels), attrgetter(row.attribute), set()
    for worker, record in records:
        labels = (_text(worker.worker), *(_text(getattr(record, label)) for label in row.labels))
        if (value := value_of(record)) is not None and labels not in seen:
            seen.add(labels)  # two loops may have one description: Prometheus refuses what is there twice
            family.add_metric(labels, value)
    return family


def _total(name: str, metric: str, text: str, observations: Sequence[Observation]) -> Metric:
    family = _family(GAUGE, metric, text, ())
    for each in observations:
        family.add_metric([_text(each.worker)], each.totals.get(name, 0))
    return family


def _family(kind: Any, name: str, text: str, labels: tuple[str, ...]) -> Any:
    return kind(f"telegrad_{name}", text, labels=("worker", *labels))


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
