"""Run the examples that ``docs/examples.md`` lists, and write into its table what each reached and how much CPU time it took.

``python docs/write_examples.py`` runs all; names of examples run those. The time is that of all processes of an example, so
other work on the machine hardly changes it.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("examples.md")
ROW = re.compile(r"^(\| \[`(\w+)`\]\(\.\./examples/\w+\.py\) \| .* \|) .* \| .* \|$", re.MULTILINE)
RESULTS = (  # in an example's output, and on the page
    (r"accuracy.*held-out.*: ([\d.]+%)", "{} right"),
    (r"bits per character on held-out text: ([\d.]+)", "{} bits a character"),
    (r"last 30 episodes: ([\d.]+)", "{} steps"),
    (r"backward ([\d.]+ ms), with means [\d.]+ ms", "backward in {}"),
)


def run(name: str) -> tuple[str, float]:
    """Run an example, and return its result and the CPU time, in seconds."""
    before = used()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", f"telegrad.examples.{name}"]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=600).stdout
    return result(said), used() - before


def used() -> float:
    """Return the CPU time of all processes that this one started and that have ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def result(said: str) -> str:
    """Return the figures that an example printed at its end, each once."""
    for pattern, shown in RESULTS:
        if found := list(dict.fromkeys(re.findall(pattern, said))):
            return shown.format(", ".join(found))
    return ""


def main(names: list[str]) -> None:
    """Run some examples or all, and write the page after each."""
    for _, name in ROW.findall(PAGE.read_text()):
        if not names or name in names:
            reached, seconds = run(name)
            print(name, reached, f"{seconds:.1f} s", flush=True)
            row = f"| {reached} | {seconds:.0f} s |"
            text = ROW.sub(
                lambda row_, n=name, new=row: f"{row_[1]} {new[2:]}" if row_[2] == n else row_[0], PAGE.read_text()
            )
            PAGE.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
