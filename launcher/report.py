"""The summary of a job that is over: the root cause first, then what followed from it."""

from collections.abc import Iterable

from .diagnosis import headline, how_it_ended, last_words, signal_name
from .job import JobResult, WorkerResult


def summary(result: JobResult) -> str:
    """What a user wants to read when the job is over."""
    return "\n".join([*_outcome(result), *_left_running(result), f"logs: {result.log_dir}/"])


def _outcome(result: JobResult) -> Iterable[str]:
    if result.interrupted_by is not None:
        yield f"interrupted by {signal_name(result.interrupted_by)} after {result.seconds:.1f} s"
        yield from _fates("the workers:", result.workers)
    elif result.cause is not None:
        yield from _root_cause(result.cause)
        yield from _fates("the others:", [worker for worker in result.workers if worker is not result.cause])
    else:
        early = [worker for worker in result.workers if worker.ended_early]
        count = len(result.workers) - len(early)
        yield f"{count} worker{'' if count == 1 else 's'} finished in {result.seconds:.1f} s"
        yield from _fates("the others:", early)


def _root_cause(cause: WorkerResult) -> Iterable[str]:
    yield f"root cause: {cause.name} (rank {cause.rank}) {_end(cause)}"
    if cause.code != 0:
        yield from (f"    {line}" for line in last_words(cause.log, _code(cause), cause.traceback))
    yield f"    after {cause.after:.1f} s; its log: {cause.log}"


def _end(worker: WorkerResult) -> str:
    if worker.ours:
        return f"ended by the launcher with {signal_name(-_code(worker))}"
    if worker.code == 0 and worker.ended_early:
        return "ended without rpc.shutdown(); workers call it to wait until nobody needs them any more"
    return how_it_ended(_code(worker))


def _fates(title: str, workers: Iterable[WorkerResult]) -> Iterable[str]:
    """One line for all workers of which there is the same to say."""
    names: dict[str, list[str]] = {}
    for worker in workers:
        names.setdefault(_fate(worker), []).append(worker.name)
    if names:
        yield title
    yield from (f"    {', '.join(who)}: {fate}" for fate, who in names.items())


def _fate(worker: WorkerResult) -> str:
    if worker.code is None:
        return "could not be killed; it is stuck in the kernel, see `ps`"
    if worker.lost:
        return f"lost {', '.join(worker.lost)}, and {_end(worker)}"
    if worker.code == 0:
        return "ended without rpc.shutdown()" if worker.ended_early else "finished"
    if worker.ours and not worker.traceback:
        return _end(worker)
    words = headline(worker.log, worker.code, worker.traceback)
    return _end(worker) + (f" ({words})" if words else "")


def _left_running(result: JobResult) -> Iterable[str]:
    if result.left_running and result.cause is None and result.interrupted_by is None:
        pids = ", ".join(map(str, result.left_running))
        yield f"processes that the workers had left running were ended: {pids}"


def _code(worker: WorkerResult) -> int:
    assert worker.code is not None, "a cause has ended"
    return worker.code
