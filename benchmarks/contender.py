"""Program of a contender: two worker processes of one library that measure a case whenever a line on stdin names it.

``peer_torch.py`` and ``peer_telegrad.py`` have a ``join`` function each; the rest is here, and imports neither library,
so that both are measured in the same way. Answers are JSON, one line each, on stdout: the versions, then a line for every case.
"""

from __future__ import annotations

import argparse
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answers import say
    from .cases import Kit, measure, named
else:
    # A script's own folder is on its path; the package is not, in an interpreter that has only the other library.
    from answers import say
    from cases import Kit, measure, named

Join = Callable[[str, int, str], Kit]
PEER_NAME = "worker1"


def main(join: Join, versions: dict[str, str]) -> None:
    """Be rank 0 (the measuring side, which starts rank 1) or rank 1 (which only answers)."""
    options = parse()
    if options.rank == 1:
        join(PEER_NAME, 1, options.transport).rpc.shutdown()
        return
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    command = [sys.executable, *sys.argv, "--rank", "1"]
    # Rank 1 must not write between rank 0's answers.
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr) as other:
        try:
            kit = join("worker0", 0, options.transport)
            say({"ready": {"Python": platform.python_version(), **versions}})
            serve(kit)
            kit.rpc.shutdown()
            other.wait(timeout=30)
        finally:
            other.kill()


def parse() -> argparse.Namespace:
    """Return the options of a contender."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--transport", default="default")
    return parser.parse_args()


def free_port() -> int:
    """Return a free port of the loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(kit: Kit) -> None:
    """Measure the cases named on stdin until it ends. A case that raises is answered with its error."""
    for line in sys.stdin:
        name = line.strip()
        try:
            say({"case": name, "seconds": measure(named(name), kit, PEER_NAME)})
        except Exception as error:  # reported to the runner, which shows it
            say({"case": name, "error": f"{type(error).__name__}: {error}"})
