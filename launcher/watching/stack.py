"""``telegrad stack``: the stacks of the threads of a job's workers; equal ones are shown once.

Threads in which no code of the program runs, such as an I/O loop, and most frames of libraries are left out, unless all are
asked for.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby

from ...base.printable import printable
from ...rpc.observing import Observation, ObservedFrame, ObservedThread
from .jobs import choose_job
from .observing import observe_job
from .program_files import is_programs
from .texts import place

COMMAND_THREAD = "telegrad-command"  # it answers this command


@dataclass
class StackGroup:
    """Threads with the same stack.

    Attributes:
        frames: the stack, the innermost frame last.
        threads: of each thread, its worker and its name.
    """

    frames: list[ObservedFrame]
    threads: list[tuple[str, str]] = field(default_factory=list)


def show_stacks(names: Sequence[str], key: str | None, timeout: float, with_all: bool, as_json: bool) -> bool:
    """Print the stacks of a job's threads; return whether there was one.

    Args:
        names: of these workers only; of all, if there are none.
        key: the beginning of the job's id; None for the latest of this folder.
        timeout: seconds that a worker has to answer.
        with_all: also threads that run no code of the program, and frames of libraries.
        as_json: print one JSON object.

    Raises:
        NoJobError: there is no such job or worker.
    """
    job = choose_job(key)
    seen = observe_job(job, timeout, names, ("threads",))
    groups, left_out = group_stacks(seen, with_all)
    if as_json:
        silent = {each.worker: _why(each) for each in seen if each.error}
        found = {"job": job.key, "stacks": [asdict(each) for each in groups], "left_out": left_out, "silent": silent}
        print(json.dumps(found, indent=2))
    else:
        parts = [*(_group(each, with_all) for each in groups), *(_silence(each) for each in seen if each.error)]
        parts += [f"{left_out} more run no code of the program: --all shows them"] if left_out else []
        print("\n\n".join(parts))
    return bool(groups or left_out)


def group_stacks(seen: Iterable[Observation], with_all: bool) -> tuple[list[StackGroup], int]:
    """Return the stacks, those of most threads first, and how many threads are left out; one without a frame has none.

    Args:
        seen: the observations of the workers.
        with_all: also threads that run no code of the program.
    """
    groups: dict[tuple[ObservedFrame, ...], StackGroup] = {}
    left_out = 0
    for worker, thread in [(each, thread) for each in seen for thread in each.threads]:
        if not thread.stack or thread.name == COMMAND_THREAD:
            continue
        if not (with_all or thread.at or thread.serves or thread.main):
            left_out += 1
            continue
        group = groups.setdefault(tuple(thread.stack), StackGroup(thread.stack))
        group.threads.append((worker.worker, _name(thread)))
    return sorted(groups.values(), key=lambda group: -len(group.threads)), left_out


def _name(thread: ObservedThread) -> str:
    name = thread.name or f"thread {thread.ident:#x}"
    return name if thread.kind == "thread" else f"{thread.kind} {name}"


def _group(group: StackGroup, with_all: bool) -> str:
    by_worker: dict[str, list[str]] = {}
    for worker, name in group.threads:
        by_worker.setdefault(worker, []).append(name)
    heading = ", ".join(f"{worker} ({', '.join(dict.fromkeys(names))})" for worker, names in by_worker.items())
    count = f"{len(group.threads)} threads: " if len(group.threads) > 1 else ""
    lines = _frames(group.frames[::-1], with_all)
    return "\n".join(printable(line, 2000) for line in (f"{count}{heading}", *lines))


def _frames(frames: Sequence[ObservedFrame], with_all: bool) -> list[str]:
    """Return the lines of a stack, the innermost frame first; of frames of libraries in a row there is the number only."""
    lines = []
    for programs, run in groupby(frames, lambda frame: with_all or frame is frames[0] or is_programs(frame.file)):
        each = [f"  {place(frame)}" for frame in run]
        lines += each if programs or len(each) == 1 else [f"  ... {len(each)} frames of libraries"]
    return lines


def _silence(worker: Observation) -> str:
    return printable(f"{worker.worker}: {_why(worker)}")


def _why(worker: Observation) -> str:
    known = f"its process {worker.process_id} is {worker.process_state}" if worker.process_state else ""
    return "; ".join(each for each in (known, worker.error) if each)
