"""``telegrad memory``: memory of a job's workers: processes, references by owner and size, shared segments, arrays in files."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...rpc.observing import Observation, ObservedReference
from ...rref.extend import PLACES_VARIABLE
from .jobs import LocalJob, choose_job
from .observing import observe_job
from .texts import columns, place, size

MEMORY_COLUMNS = ("WORKER", "PROCESS", "SEGMENTS", "IN FILES", "OWNED", "REFERENCES", "HELD", "")
MAPPED_SEGMENT = re.compile(
    rb"([0-9a-f]+)-([0-9a-f]+) .{4} [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) (\d+) +/memfd:telegrad \(deleted\)"
)
MOST_MAPS_BYTES = 64 << 20


@dataclass
class SharedSegment:
    """Memory that workers of this machine share.

    Attributes:
        bytes: its size, as far as it is mapped.
        workers: names of those that map it.
    """

    bytes: int = 0
    workers: list[str] = field(default_factory=list)


def show_memory(names: Sequence[str], key: str | None, timeout: float, most: int, where: bool, as_json: bool) -> bool:
    """Print the memory of a job's workers; return whether any worker answered.

    Args:
        names: of these workers only; of all, if there are none.
        key: the beginning of the job's id; None for the latest of this folder.
        timeout: seconds that a worker has to answer.
        most: number of references and of segments to show.
        where: show the lines of the program that made the references.
        as_json: print one JSON object.

    Raises:
        NoJobError: there is no such job or worker.
    """
    job = choose_job(key)
    seen = observe_job(job, timeout, names, ("owned", "held"))
    segments = shared_segments(job, {each.worker for each in seen})
    references = _references(seen)
    if as_json:
        print(json.dumps(_table(job, seen, references, segments), indent=2))
        return any(not each.error for each in seen)
    heading = ("OWNER", "SIZE", "TYPE", "HELD BY", "REFERENCE", *(["MADE AT"] if where else []))
    shown_references = [heading, *(_reference(each, where) for each in references[:most])]
    shown_segments = [
        ("SEGMENT OF", "SIZE"),
        *((", ".join(each.workers), size(each.bytes)) for each in segments[:most]),
    ]
    print(columns([MEMORY_COLUMNS, *(_worker(each, segments) for each in seen)], range(1, 7)))
    for rows, left in ((shown_references, len(references) - most), (shown_segments, len(segments) - most)):
        if len(rows) > 1:
            print("\n" + columns(rows, [1]) + (f"\n{left} more: --most shows them" if left > 0 else ""))
    if where and references and not any(each.where for each in references):
        print(f"\nno worker records where references are made: start them with {PLACES_VARIABLE}=1")
    return any(not each.error for each in seen)


def _references(seen: Sequence[Observation]) -> list[ObservedReference]:
    """Return the references of all owners, the largest first; where one was made, its maker knows, who may hold it."""
    places = {each.rref_id: each.where for worker in seen for each in (*worker.held, *worker.owned) if each.where}
    owned = [replace(each, where=places.get(each.rref_id)) for worker in seen for each in worker.owned]
    return sorted(owned, key=lambda each: -(each.bytes or 0))


def shared_segments(job: LocalJob, names: Iterable[str]) -> list[SharedSegment]:
    """Return the segments that workers of this machine map, the largest first, as the kernel tells them.

    Args:
        job: the job.
        names: its workers.
    """
    found: dict[tuple[bytes, bytes], SharedSegment] = {}
    for worker in job.workers:
        if worker.record.worker in names:
            for place, count in _mapped(worker.record.process_id).items():
                segment = found.setdefault(place, SharedSegment())
                segment.bytes = max(segment.bytes, count)
                segment.workers.append(worker.record.worker)
    return sorted(found.values(), key=lambda each: (-each.bytes, each.workers))


def _mapped(process_id: int) -> dict[tuple[bytes, bytes], int]:
    """Return the mapped bytes of each segment of a process, by device and number of its file."""
    sizes: dict[tuple[bytes, bytes], int] = {}
    try:
        with open(Path("/proc", str(process_id), "maps"), "rb") as file:
            text = file.read(MOST_MAPS_BYTES)
    except OSError:
        return {}
    for begin, end, device, number in MAPPED_SEGMENT.findall(text):
        sizes[device, number] = sizes.get((device, number), 0) + int(end, 16) - int(begin, 16)
    return sizes


def _worker(worker: Observation, segments: Iterable[SharedSegment]) -> tuple[object, ...]:
    mapped = sum(each.bytes for each in segments if worker.worker in each.workers)
    owned = sum(each.bytes or 0 for each in worker.owned)
    counts = (worker.totals.get("owned", 0), worker.totals.get("held", 0))
    sizes = map(size, (worker.memory_bytes, mapped, worker.spilled_bytes, owned))
    return worker.worker, *sizes, *counts, worker.error


def _reference(each: ObservedReference, where: bool) -> tuple[object, ...]:
    made = [place(each.where) if each.where else "-"] if where else []
    kind = each.type or ("not made yet" if not each.made else "-")
    return each.owner, size(each.bytes), kind, ", ".join(each.holders) or "-", each.rref_id, *made


def _table(
    job: LocalJob,
    seen: Sequence[Observation],
    references: Sequence[ObservedReference],
    segments: Sequence[SharedSegment],
) -> dict[str, Any]:
    workers = [
        {name: getattr(each, name) for name in ("worker", "error", "memory_bytes", "spilled_bytes", "totals")}
        for each in seen
    ]
    tables = {"references": [asdict(each) for each in references], "segments": [asdict(each) for each in segments]}
    return {"job": job.key, "workers": workers, **tables}
