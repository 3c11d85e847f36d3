"""Result of a job that is over, and its summary: the root cause first, then what followed from it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .exit_words import describe_exit, signal_name
from .nodes.outcome import Outcome
from .progress import counted
from .restarts.history import WorkerFailure
from .tracebacks import describe_error, headline

MOST_TOLD_RESTARTS = 8


@dataclass(frozen=True)
class WorkerResult:
    """End of one worker.

    Args:
        name: the worker's name.
        rank: its rank.
        code: its exit code; minus the number of the signal that killed it; None if it survived even KILL.
        ended_by_launcher: the launcher sent that signal.
        after: seconds from the job's start to the worker's end.
        log: file with the worker's output.
        traceback: of the exception that ended its program, if it reported one.
        lost: names of the workers whose loss caused that exception.
        ended_early: it joined the job and ended without ``rpc.shutdown``.
        last_trace: trace of the calls that it served last, if it failed and had served one.
        restarts: how often it was started again; the other attributes are of its last process.
        last_events: what it noted before its end (joined, lost, left; what it logged, its loops), in words, the latest last.
    """

    name: str
    rank: int
    code: int | None
    ended_by_launcher: bool
    after: float
    log: Path
    traceback: str = ""
    lost: tuple[str, ...] = ()
    ended_early: bool = False
    last_events: tuple[str, ...] = ()
    last_trace: Path | None = None
    restarts: int = 0


@dataclass(frozen=True)
class JobResult:
    """End of a job.

    Args:
        exit_code: 0 if all workers succeeded; else the cause's exit code, 128 + the number if that was a signal, 1 if it has
            none of its own.
        cause: the worker whose failure caused the others', if any failed.
        interrupted_by: number of the signal by which the user ended the job.
        workers: ends of all workers, in order of rank.
        log_dir: folder of the logs.
        seconds: from the job's start to its end.
        left_running: process ids of what the workers had left running; they have been ended.
        verdict: of a job on several nodes: number of the node that failed first, and how; None if none did.
        ended_because: why it was ended, if not because of a worker of this machine.
        restarts: restarts of workers, in words, in order.
        failure: after which the policies start all workers again; None if there is none.
        may_begin_again: nothing forbids to start all workers again.
        no_restart: why the cause was not followed by a restart, although its policy says so; empty if there was none.
    """

    exit_code: int
    cause: WorkerResult | None
    interrupted_by: int | None
    workers: tuple[WorkerResult, ...]
    log_dir: Path
    seconds: float
    left_running: tuple[int, ...]
    verdict: tuple[int, Outcome] | None = None
    ended_because: str = ""
    restarts: tuple[str, ...] = ()
    no_restart: str = ""
    failure: WorkerFailure | None = None
    may_begin_again: bool = False


def summary(result: JobResult) -> str:
    """Return the text that a user reads when the job is over."""
    return "\n".join([*_outcome(result), *_restarts(result), *_left_running(result), f"logs: {result.log_dir}/"])


def _outcome(result: JobResult) -> Iterable[str]:
    if result.verdict is not None:
        node, outcome = result.verdict
        yield f"root cause: node {node}: {outcome.cause or describe_exit(outcome.exit_code)}"
        yield from outcome.details
        yield from _each("the workers of this node:", result.workers)
    elif result.interrupted_by is not None:
        yield f"interrupted by {signal_name(result.interrupted_by)} after {result.seconds:.1f} s"
        yield from _each("the workers:", result.workers)
    elif result.ended_because:
        yield f"root cause: {result.ended_because}"
        yield from _each("the workers:", result.workers)
    elif result.cause is not None:
        first, *more = root_cause_lines(result.cause)
        yield from (f"root cause: {first}", *more)
        yield from _each("the others:", [worker for worker in result.workers if worker is not result.cause])
    else:
        early = [worker for worker in result.workers if worker.ended_early]
        count = len(result.workers) - len(early)
        yield f"{counted(count)} finished in {result.seconds:.1f} s"
        yield from _each("the others:", early)


def root_cause_lines(cause: WorkerResult) -> Iterator[str]:
    """Yield what a user reads of the worker that failed first: who it is and how it ended, its error, its log."""
    yield f"{cause.name} (rank {cause.rank}) {_end(cause)}"
    if cause.code != 0:
        yield from (f"    {line}" for line in describe_error(cause.log, _code(cause), cause.traceback))
    if cause.code != 0 and not cause.traceback and not cause.ended_by_launcher:
        yield from (f"    {line}" for line in cause.last_events)
    if cause.ended_by_launcher and not cause.ended_early:
        yield "    it failed, and did not end by itself: a thread that is not a daemon, or an exit handler, still ran"
    trace = f"; a trace of its last calls: {cause.last_trace}" if cause.last_trace else ""
    yield f"    after {cause.after:.1f} s; its log: {cause.log}{trace}"


def _end(worker: WorkerResult) -> str:
    if worker.ended_by_launcher:
        early = "left without rpc.shutdown(), did not end in time, and was " if worker.ended_early else ""
        return f"{early}ended by the launcher with {signal_name(-_code(worker))}"
    if worker.code == 0 and worker.ended_early:
        return "ended without rpc.shutdown() or destroy_process_group(), which wait until no other worker needs it"
    return describe_exit(_code(worker))


def _each(title: str, workers: Iterable[WorkerResult]) -> Iterable[str]:
    """Yield the title and a line for each outcome, with the names of all workers that had it."""
    names: dict[str, list[str]] = {}
    for worker in workers:
        names.setdefault(_worker_outcome(worker), []).append(worker.name)
    if names:
        yield title
    yield from (f"    {', '.join(who)}: {outcome}" for outcome, who in names.items())


def _worker_outcome(worker: WorkerResult) -> str:
    if worker.code is None:
        return "could not be killed; it is stuck in the kernel, see `ps`"
    if worker.lost:
        return f"lost {', '.join(worker.lost)}, and {_end(worker)}"
    if worker.code == 0:
        return "ended without rpc.shutdown()" if worker.ended_early else "finished"
    if worker.ended_by_launcher and not worker.traceback:
        return _end(worker)
    words = headline(worker.log, worker.code, worker.traceback)
    return _end(worker) + (f" ({words})" if words else "")


def _restarts(result: JobResult) -> Iterable[str]:
    if result.no_restart:
        yield f"not started again: {result.no_restart}"
    if result.restarts:
        last = len(result.restarts) > MOST_TOLD_RESTARTS
        yield f"restarts: {len(result.restarts)}" + (f", the last {MOST_TOLD_RESTARTS}:" if last else "")
    yield from (f"    {line}" for line in result.restarts[-MOST_TOLD_RESTARTS:])


def _left_running(result: JobResult) -> Iterable[str]:
    if result.left_running and result.cause is None and result.interrupted_by is None:
        pids = ", ".join(map(str, result.left_running))
        yield f"processes that the workers had left running were ended: {pids}"


def _code(worker: WorkerResult) -> int:
    assert worker.code is not None, "a cause has ended"
    return worker.code
