"""A page that is followed as a reader does: files are written into a folder, prompts and commands are given there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from telegrad.launcher.environment import reserve_port

from .pages import CHANGING, ROOT, blocks, same_output
from .programs import PROGRAMS

SESSION = PROGRAMS / "session.py"
LIMIT = 120  # seconds until a command counts as hanging
COMPLAINTS = re.compile("Traceback|warning|hold references", re.IGNORECASE)


def follow(page, folder):
    """Do what a page says, and return the blocks that need what is not here.

    Args:
        page: path of the page.
        folder: empty, gets the page's files. It has ``.venv`` and ``examples``, as the clone of a reader has.

    Raises:
        AssertionError: a command failed, complained, or printed something else than the page says.
    """
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "examples").symlink_to(ROOT / "examples")
    todo = [block for block in blocks(page) if block.kind != "left out"]
    _give_prompts([block for block in todo if block.kind == "prompt"], folder)
    missing = []
    for block, following in zip(todo, [*todo[1:], None]):
        if block.kind == "file":
            (folder / block.file).write_text(block.text)
        elif block.kind == "commands" and _is_missing(block):
            missing.append(block)
        elif block.kind == "commands":
            said = _give_commands(block, folder)
            _check(block, said, following if following and following.kind == "output" else None)
    return missing


def _is_missing(block):
    """Return whether a block's comment says that it needs a command, a package or a version of Python that is not here."""
    needed = re.match(r"needs (\S+)$", block.comment)
    if needed and needed[1][0].isdigit():
        return sys.version_info < tuple(map(int, needed[1].split(".")))
    return bool(needed) and not (shutil.which(needed[1], path=_environment()["PATH"]) or _is_installed(needed[1]))


def _is_installed(package):
    found = find_spec(package)
    return found is not None and found.origin is not None  # a folder of tests may have a package's name


def _give_prompts(prompts, folder):
    if prompts:
        given = json.dumps({"prompts": [(block.place, block.text) for block in prompts], "changing": CHANGING})
        # Not a script: new processes would look for its file.
        said, code = _ended(_started([sys.executable, "-c", SESSION.read_text()], folder), given)
        assert not code, said


def _give_commands(block, folder):
    """Give a block's commands to a shell, one after another or all at the same time, and return what they wrote."""
    running = (_started(["bash", "-c", command], folder) for command in _made_local(block))
    said = ""
    for process in list(running) if block.comment.startswith("together") else running:
        text, code = _ended(process)
        assert not code, f"{block.place}: {process.args[-1]}: exit code {code}:\n{text}"
        said += text
    return said


def _made_local(block):
    """Return a block's commands, with an address of this machine in the place of one that the page says to be here."""
    here = re.search(r", (\S+) is here$", block.comment)
    if not here:
        return block.commands
    with closing(reserve_port()) as reserved:
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
    return [command.replace(here[1], address) for command in block.commands]


def _check(block, said, output):
    if output:
        same = same_output(said, output.text, output.changing)
        assert same, f"{block.place} printed:\n{said}\nand its page says:\n{output.text}"
    assert output or not COMPLAINTS.search(said), f"{block.place}:\n{said}"


def _environment():
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONFAULTHANDLER": "1", "COLUMNS": "120"}


def _started(command, folder):
    return subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _ended(process, text=None):
    """Return what a process wrote, and its exit code; one that hangs is killed, with those that it started."""
    try:
        return process.communicate(text, timeout=LIMIT)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return f"{process.communicate()[0]}\nit did not end within {LIMIT} s", -1
