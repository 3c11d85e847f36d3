"""Environments of the peers: ``python -m telegrad.benchmarks.environments`` makes one for each, under ``.venv/peers``.

Each library is installed alone, so that none decides which versions another one gets.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".venv" / "peers"
GUESTS = FOLDER.parent / "guests"
REQUIREMENTS = {
    "torch": ["torch", "numpy"],
    "rpyc": ["rpyc>=6", "numpy"],
    "zeromq": ["pyzmq", "numpy"],
    "ray": ["ray", "numpy"],
    "capnp": ["pycapnp"],
    "monarch": ["torchmonarch", "torch", "cloudpickle>=3.1", "numpy"],
    "mpi4py": ["mpi4py", "mpich", "numpy"],
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the environments that are named, and return the exit status: 1 if one could not be made."""
    parser = argparse.ArgumentParser(
        prog="python -m telegrad.benchmarks.environments", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("name", nargs="*", help=f"of {', '.join(REQUIREMENTS)} (default: all)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where (default: {FOLDER})")
    options = parser.parse_args(arguments)
    if unknown := set(options.name) - set(REQUIREMENTS):
        parser.error(f"there is no environment {', '.join(sorted(unknown))}; there are {', '.join(REQUIREMENTS)}")
    made = [make(options.folder / name, REQUIREMENTS[name]) for name in options.name or REQUIREMENTS]
    return 0 if all(made) else 1


def make(folder: Path, requirements: list[str]) -> bool:
    """Make one environment, if it is not there yet; return whether it is there now."""
    if not (folder / "installed").exists():
        print(f"{folder}: installing {', '.join(requirements)}", flush=True)
        venv.create(folder, with_pip=True)
        done = subprocess.run([interpreter(folder), "-m", "pip", "install", "--quiet", *requirements])
        if done.returncode:
            return False
        (folder / "installed").touch()
    print(f"{folder}: ready", flush=True)
    return True


def interpreter(folder: Path) -> str:
    """Return the interpreter of an environment."""
    return str(folder / "bin" / "python")


def find_peers(given: Sequence[str]) -> dict[str, str]:
    """Return the interpreter of each peer that there is.

    Args:
        given: ``NAME=PYTHON`` or, for PyTorch, ``PYTHON``; they come before the environments that ``main`` made, and
            before PyTorch beside Telegrad.

    Raises:
        ValueError: a name is none of a peer.
    """
    found = {name: interpreter(FOLDER / name) for name in REQUIREMENTS if (FOLDER / name / "installed").exists()}
    if "torch" not in found and importlib.util.find_spec("torch"):
        found["torch"] = sys.executable
    for text in given:
        name, separator, python = text.partition("=")
        name, python = (name, python) if separator else ("torch", text)
        if name not in REQUIREMENTS:
            raise ValueError(f"{name} is no peer; name one of {', '.join(REQUIREMENTS)} as NAME=PYTHON")
        found[name] = python
    return found


if __name__ == "__main__":
    sys.exit(main())
