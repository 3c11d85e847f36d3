"""``telegrad scale``, ``join`` and ``leave``: ask the launcher of a job to start workers, or to let some leave."""

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

from ...base.printable import printable
from ...base.processes import peer_process
from .jobs import LocalJob, NoJobError, choose_job

ANSWER_SECONDS = 10.0
MOST_NAMES_BYTES = 1 << 20


def scale_job(key: str | None, counts: Sequence[str], as_json: bool) -> None:
    """Ask for numbers of workers.

    Args:
        key: the beginning of the job's id; None for the latest of this folder.
        counts: ``ROLE=COUNT`` each.
        as_json: print one JSON object.

    Raises:
        NoJobError: there is no such job, or it cannot be done.
    """
    wanted = {}
    for each in counts:
        role, equals, count = each.partition("=")
        if not role or not equals or not (count.isdecimal() and len(count) < 10) or role in wanted:
            raise NoJobError(
                f"cannot read {printable(each)!r}: write ROLE=COUNT, each role once, for example trainer=4"
            )
        wanted[role] = int(count)
    _change(key, {"scale": wanted}, as_json)


def join_job(key: str | None, role: str, as_json: bool) -> None:
    """Ask for one more worker of a role.

    Args:
        key: the beginning of the job's id; None for the latest of this folder.
        role: empty for the only one.
        as_json: print one JSON object.

    Raises:
        NoJobError: there is no such job, or it cannot be done.
    """
    _change(key, {"join": role}, as_json)


def leave_job(key: str, names: Sequence[str], as_json: bool) -> None:
    """Ask workers to leave between two steps.

    Args:
        key: the beginning of the job's id.
        names: of the workers.
        as_json: print one JSON object.

    Raises:
        NoJobError: there is no such job, or it cannot be done.
    """
    _change(key, {"leave": list(names)}, as_json)


def _change(key: str | None, request: dict[str, Any], as_json: bool) -> None:
    job = choose_job(key, only_here=True, argument="JOB")
    answer = _ask(job, _launcher(job), request)
    if as_json:
        print(json.dumps({"job": job.key, **answer}, indent=2))
        return
    lines = [f"{printable(name)}: started" for name in answer["started"]]
    lines += [f"{printable(name)}: asked to leave" for name in answer["asked"]]
    print("\n".join(lines) or "nothing to change")


def _launcher(job: LocalJob) -> str:
    """Return the path of the socket of the job's launcher."""
    found = {each.record.launcher for each in job.workers}
    key = printable(job.key)
    if len(found) > 1:
        raise NoJobError(
            f"the workers of job {key} were started by {len(found)} launchers, and one must have started all"
        )
    (path,) = found
    if not path:
        raise NoJobError(f"job {key} has a fixed size; start it with `telegrad run --elastic` to change it")
    return path


def _ask(job: LocalJob, path: str, request: dict[str, Any]) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(path)
            if peer_process(connection)[1] != os.geteuid():
                raise NoJobError(f"another user listens at {path}")
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as reader:
                answer: dict[str, Any] = json.loads(reader.readline(MOST_NAMES_BYTES))
    except (OSError, ValueError) as error:
        raise NoJobError(
            f"the launcher of job {printable(job.key)} does not answer ({error}): the job has ended, or ends"
        ) from None
    if why := answer.get("error"):
        raise NoJobError(f"job {printable(job.key)}: {printable(why)}")
    return answer
