"""Summary of a job that is over: the root cause first, then what followed from it."""

from collections.abc import Iterable, Iterator

from .exit_words import describe_exit, signal_name
from .job import JobResult, WorkerResult
from .progress import counted
from .tracebacks import describe_error, headline

MOST_TOLD_RESTARTS = 8


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
        return "ended without rpc.shutdown(); workers call it to wait until no other worker needs them"
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
