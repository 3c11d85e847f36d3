"""Conclusion of a job on several nodes: each node's end is told to the host, and the first cause comes back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ..exit_words import signal_name
from ..result import JobResult, root_cause_lines
from .outcome import Outcome, Verdict

if TYPE_CHECKING:
    from .member import Membership  # loads gRPC and TLS


def concluded(result: JobResult, node: "Membership", verdict: Verdict | None) -> JobResult:
    """Return the result of this node's workers with the verdict about the whole job.

    Args:
        result: of this node's workers.
        node: membership in the job.
        verdict: of the host; None if no node has failed.
    """
    if verdict is None:
        return result
    result = replace(result, no_restart=verdict.no_restart or result.no_restart)
    if verdict.node == node.placement.node:
        return result
    return replace(result, exit_code=verdict.outcome.exit_code, verdict=(verdict.node, verdict.outcome))


@contextmanager
def told_to_others(node: "Membership") -> Iterator[None]:
    """Tell the other nodes why this one's launcher failed, if it does in this block: they would only see that it is gone.

    Args:
        node: membership in the job.
    """
    try:
        yield
    except OSError as error:
        node.tell(Outcome(1, f"the launcher at {node.placement.host} could not run its workers: {error}", gone=True))
        raise


def outcome_of(result: JobResult) -> Outcome:
    """Return the outcome of a launcher's workers, for others."""
    if result.interrupted_by is not None:
        return Outcome(result.exit_code, f"interrupted by {signal_name(result.interrupted_by)}", gone=True)
    if result.cause is None:
        return Outcome(result.exit_code, again=result.may_begin_again)
    first, *details = root_cause_lines(result.cause)
    again = result.may_begin_again and result.failure is not None
    return Outcome(result.exit_code, first, tuple(details), result.cause.lost, failure=result.failure, again=again)
