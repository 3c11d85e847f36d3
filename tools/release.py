"""Files of a release: built twice and compared, checked, installed alone on each Python, and listed with what they need.

``make dist`` runs it in a clone, and leaves the wheel, the source archive and the list of components (CycloneDX) in ``dist/``.
What is built is the last commit, not the working tree. Installing needs a package index.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MINORS = range(10, 15)  # of Python 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check a release; the exit code is 1 if two builds differ or a check fails."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.release", description=__doc__.partition("\n")[0])
    parser.add_argument("--python", nargs="*", help="interpreters to install with (default: python3.10 to python3.14)")
    options = parser.parse_args(arguments)
    found = options.python or [path for minor in MINORS if (path := shutil.which(f"python3.{minor}"))]
    with tempfile.TemporaryDirectory() as folder:
        first, second = (build(Path(folder, name)) for name in ("first", "second"))
        if digests(first) != digests(second):
            print(f"two builds differ: {digests(first)} and {digests(second)}")
            return 1
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(first, DIST)
        check(found, Path(folder))
    for name, digest in digests(DIST).items():
        print(digest, name)
    return 0


def check(pythons: Sequence[str], folder: Path) -> None:
    """Check the files in ``dist/``, install the wheel with each Python, and list the components that the first one got."""
    run("twine", "check", "--strict", *(str(path) for path in DIST.iterdir()))
    (wheel,) = DIST.glob("*.whl")
    run("check-wheel-contents", str(wheel))
    for number, python in enumerate(pythons):
        print(python, install(python, wheel, folder / f"alone{number}"), flush=True)
    if pythons:
        components = DIST / f"{wheel.name.partition('-py3')[0]}.cdx.json"
        options = ("--output-reproducible", "--output-file", str(components))
        run("cyclonedx-py", "environment", str(folder / "alone0"), *options)


def run(*command: str, folder: Path = ROOT) -> str:
    """Run a command of this environment, and return what it wrote.

    Raises:
        SystemExit: it failed; the message is what it wrote.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SOURCE_DATE_EPOCH": str(time_of_commit())}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")
    return done.stdout


def time_of_commit() -> int:
    """Return the time of the last commit, in seconds since 1970: that of all files in what is built."""
    said = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(said.stdout)


def build(folder: Path) -> Path:
    """Build wheel and source archive from the last commit, in a new folder, and return the folder that has them."""
    source, out = folder / "source", folder / "dist"
    source.mkdir(parents=True)
    run("git", "archive", "--output", str(folder / "source.tar"), "HEAD")
    with tarfile.open(folder / "source.tar") as archive:
        archive.extractall(source)
    run(sys.executable, "-m", "build", "--outdir", str(out), folder=source)
    for archive_file in out.glob("*.tar.gz"):
        repack(archive_file, time_of_commit())
    return out


def repack(file: Path, seconds: int) -> None:
    """Write a ``.tar.gz`` anew: files in order, of one time and of no user, so that equal contents are equal files."""
    with tarfile.open(file) as archive:
        members = sorted((member for member in archive if member.isfile()), key=lambda member: member.name)
        contents = [archive.extractfile(member).read() for member in members]  # type: ignore[union-attr]
    with gzip.GzipFile(file, "wb", mtime=seconds) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for member, content in zip(members, contents):
            plain = tarfile.TarInfo(member.name)
            plain.size, plain.mtime, plain.mode = len(content), seconds, 0o644
            archive.addfile(plain, io.BytesIO(content))


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def install(python: str, wheel: Path, folder: Path) -> str:
    """Install the wheel and nothing else into a new environment, run the first program of ``README.md``, return its output."""
    run(python, "-m", "venv", str(folder))
    commands = folder / "bin"
    run(str(commands / "pip"), "install", "--quiet", "--disable-pip-version-check", str(wheel))
    program = re.search(r"```python\n(# hello\.py\n.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert program, "README.md has no hello.py"
    (folder / "hello.py").write_text(program[1])
    said = run(str(commands / "telegrad"), "run", "-n", "2", "hello.py", folder=folder)
    shown = [line for line in said.splitlines() if "tensor(" in line]
    if not shown:
        raise SystemExit(f"hello.py printed no tensor with {python}:\n{said}")
    return shown[0]


if __name__ == "__main__":
    sys.exit(main())
