"""Run of ``telegrad doctor``: prints each finding as it comes; the exit code says whether jobs would fail."""

import json
from collections.abc import Iterator
from pathlib import Path

from ..errors import NodeError, TokenError
from ..nodes.options import LISTEN_SECONDS, parse_endpoint
from ..nodes.token import read_token
from .finding import Finding, Level, problem, warning
from .machine import check_machine
from .pair import ask, listen
from .way import check_way

NO_TOKEN = "start `telegrad doctor --listen` there, and give both machines the same token (telegrad token)"


def examine(
    endpoint: str | None, listens: bool, token_file: Path | None, timeout: float = LISTEN_SECONDS, as_json: bool = False
) -> bool:
    """Print what is found, and return whether there is no problem.

    Args:
        endpoint: "host:port" of another machine, or, if ``listens``, of this one; None to look at this machine only.
        listens: wait for the other machine.
        token_file: file with the token; None takes the environment's.
        timeout: seconds to wait for the other machine.
        as_json: print one JSON object when all is found, instead of lines as it is found.

    Raises:
        ValueError: the endpoint cannot be read.
        NodeError: this machine cannot listen there, or has no token.
    """
    found = []
    for finding in _findings(endpoint, listens, token_file, timeout):
        found.append(finding)
        if not as_json:
            print(finding, flush=True)
    well = all(finding.level is not Level.PROBLEM for finding in found)
    if as_json:
        print(json.dumps({"ok": well, "findings": [finding.as_dict() for finding in found]}, indent=2))
    return well


def _findings(endpoint: str | None, listens: bool, token_file: Path | None, timeout: float) -> Iterator[Finding]:
    yield from check_machine()
    if endpoint is None:
        return
    host, port = parse_endpoint(endpoint)
    if listens:
        yield from listen(host, port, read_token(token_file), timeout)
        return
    way = list(check_way(host, port))
    yield from way
    if any(finding.level is Level.OK for finding in way[1:]):
        yield from _other(host, port, token_file)


def _other(host: str, port: int, token_file: Path | None) -> Iterator[Finding]:
    try:
        token = read_token(token_file)
    except TokenError as error:
        yield warning("the other machine", f"not asked: {error}", NO_TOKEN)
        return
    try:
        yield from ask(host, port, token)
    except (OSError, NodeError) as error:
        yield problem("the other machine", f"it does not answer as a launcher: {error}", NO_TOKEN)
