"""Spec of a job: its program, its workers, its logs; and checks of the values that a user gives."""

import importlib.util
import os
import re
import resource
import shutil
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from ..base.arguments import check_type
from .restarts.rules import NO_RESTARTS, RestartPolicy, RestartRules

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
MOST_WORKERS = 4096
FILES_PER_WORKER = 4  # its output, its log, its pidfd, and one more while it is started
FILES_OF_LAUNCHER = 64
MOST_SECONDS = 20 * 86400  # beyond 24 days a selector's timeout overflows
ONE_A_CORE = ("auto", "cpu", "gpu")  # torchrun's; there are no GPUs here
_EXAMPLE = "for example `telegrad run -n 4 train.py`"


@dataclass(frozen=True)
class JobSpec:
    """Job on this machine: one process for each worker, all with the same program.

    Args:
        program: a script's path, or a module's name.
        args: the program's arguments.
        workers: the workers' names, in order of rank.
        module: ``program`` is a module's name.
        interpreter: the Python that runs the workers.
        log_dir: folder that receives ``<worker>.log`` of each worker; None makes a new one under ``telegrad_runs/``.
        grace: seconds between asking workers to end and killing them.
        preload: fork the workers from one process that has imported Telegrad, NumPy and gRPC, which starts them sooner and in
            less memory. Without it, or with another interpreter, or a program that is no file of Python source, each starts
            an interpreter of its own, in which a script, or ``variables``, can set what these libraries read at import.
        no_python: ``program`` is an executable of its own.
        pin: each worker has cores of its own, if there are enough.
        tensorboard: folder that receives event files of what each worker logs, in a folder of its name; None for none.
        plain: show lines only, no live view below them, also on a terminal.
        restarts: what is started again when a worker fails; by default nothing.
        elastic: its workers form a dynamic group, which ``telegrad scale``, ``join`` and ``leave`` change.
        variables: environment variables: the role whose workers get one (empty: all), its name, its value.

    Raises:
        ValueError: a name, a number or a time is not possible.
        TypeError: ``grace`` is not a number.
        OSError: the script or the interpreter cannot be used (``FileNotFoundError``, ``PermissionError``, ...).
        ModuleNotFoundError: there is no such module.
    """

    program: str
    args: tuple[str, ...] = ()
    workers: tuple[str, ...] = ("worker0",)
    module: bool = False
    interpreter: str = sys.executable
    log_dir: Path | None = None
    grace: float = 3.0
    preload: bool = True
    no_python: bool = False
    pin: bool = False
    tensorboard: Path | None = None
    plain: bool = False
    restarts: RestartRules = NO_RESTARTS
    variables: tuple[tuple[str, str, str], ...] = ()
    elastic: bool = False

    def __post_init__(self) -> None:
        check_type("program", self.program, str, "the path of a script, or the name of a module")
        check_type("interpreter", self.interpreter, str, "the path of a python")
        _check_workers(self.workers)
        check_seconds("the grace", self.grace)
        if self.elastic:
            _check_elastic(self)
        if self.tensorboard is not None and importlib.util.find_spec("tensorboardX") is None:
            raise ModuleNotFoundError("--tensorboard needs tensorboardX: pip install tensorboardX")
        if self.no_python:
            _check_executable(self.program, self.module)
            return
        _check_interpreter(self.interpreter)
        if self.module:
            _check_module(self.program, own_interpreter=self.interpreter == sys.executable)
        else:
            _check_script(self.program)

    @property
    def policies(self) -> list[RestartPolicy]:
        """Restart policies of the workers, in order of rank."""
        return [self.restarts.of(role_of(worker)) for worker in self.workers]

    @property
    def command(self) -> list[str]:
        """Command line of a worker's process."""
        if self.no_python:
            return [self.program, *self.args]
        return [self.interpreter, *(["-m"] if self.module else []), self.program, *self.args]

    @property
    def forks(self) -> bool:
        """Return whether the workers are forked from a process that has imported what they need."""
        source = self.module or (self.program.endswith(".py") and Path(self.program).is_file())
        return (
            self.preload
            and bool(source)
            and not self.no_python
            and not self.variables
            and self.interpreter == sys.executable
        )

    @property
    def title(self) -> str:
        """Short name of the program, for folders and messages."""
        return self.program.rpartition(".")[2] if self.module else Path(self.program).stem


def _check_elastic(spec: JobSpec) -> None:
    if spec.restarts.policies & {RestartPolicy.ALL, RestartPolicy.REST}:
        raise ValueError("--elastic goes with --restart one or never: its workers come and leave one by one")
    if spec.pin:
        raise ValueError(
            "--elastic and --pin exclude each other: the cores are shared out among a fixed number of workers"
        )


def role_of(worker: str) -> str:
    """Return the role of a worker: its name without the number."""
    return worker.rstrip("0123456789") or worker


def check_roles(restarts: RestartRules, workers: Collection[str]) -> None:
    """Check that a job has each role that its rules of restarts name.

    Raises:
        ValueError: it lacks one.
    """
    roles = {role_of(worker) for worker in workers}
    for role, _ in restarts.roles:
        if role not in roles:
            raise ValueError(
                f"--restart names the role {role!r}, which this job does not have; its roles are {', '.join(sorted(roles))}"
            )


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Return ``count`` names of workers: ``name0``, ``name1``, ..."""
    return tuple(f"{name}{i}" for i in range(count))


def parse_count(text: str) -> int:
    """Return the number of workers that the user gave after ``-n``; for ``auto``, ``cpu`` and ``gpu`` that of the cores.

    Raises:
        ValueError: it is not a number, or not possible.
    """
    if text in ONE_A_CORE:
        text = str(len(os.sched_getaffinity(0)))
    try:
        count = int(text)
    except ValueError:
        raise ValueError(f"-n takes a whole number of workers, you gave {text[:80]!r}: write {_EXAMPLE}") from None
    if count < 1:
        raise ValueError(f"-n {count} starts no worker: a job has at least one, {_EXAMPLE}")
    check_count(count, "-n")
    return count


def check_count(count: int, argument: str) -> None:
    """Check that this machine can run so many workers, before a list of them is made.

    Args:
        count: how many there are; each costs the launcher four file descriptors.
        argument: name of the argument that gave them, for the error.

    Raises:
        ValueError: there are too many.
    """
    if count > MOST_WORKERS:
        raise ValueError(f"{argument} {count} is too many: a job on one machine has at most {MOST_WORKERS} workers")
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count * FILES_PER_WORKER + FILES_OF_LAUNCHER
    if files != resource.RLIM_INFINITY and needed > files:
        raise ValueError(
            f"{argument} {count} needs {needed} open files, and this process may have {files}: start fewer workers, or allow "
            f"more files with `ulimit -n {needed}`"
        )


def check_seconds(argument: str, seconds: object) -> None:
    """Check a time to wait.

    Raises:
        TypeError: it is not a number.
        ValueError: it is negative, not a number, or longer than 20 days.
    """
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise TypeError(f"{argument} must be a number of seconds, you gave {seconds!r}")
    if not 0 <= seconds <= MOST_SECONDS:  # also false for nan
        raise ValueError(f"{argument} must be a number of seconds from 0 to {MOST_SECONDS}, you gave {seconds}")


def parse_roles(text: str) -> tuple[str, ...]:
    """Return the workers' names for roles, in order of rank: ``ps``, ``trainer0``, ``trainer1`` for ``"ps,trainer=2"``.

    Raises:
        ValueError: the text cannot be read, or gives too many workers.
    """
    workers: list[str] = []
    for role in text.split(","):
        name, equals, count = (part.strip() for part in role.partition("="))
        if not name or (equals and not (count.isdecimal() and count.strip("0"))):
            raise ValueError(
                f"cannot read the role {role.strip()!r} in --roles {text!r}: write NAME for one worker or NAME=COUNT "
                "for several, with commas between, for example --roles ps,trainer=2"
            )
        check_count(len(workers) + int(count[:20] or 1), "--roles:")  # more digits than that are too many in any case
        workers += numbered(name, int(count)) if equals else [name]
    return tuple(workers)


def _check_workers(workers: tuple[str, ...]) -> None:
    check_type("workers", workers, (tuple, list), "a tuple of names")
    if not workers:
        raise ValueError("a job has at least one worker, and `workers` names none")
    check_count(len(workers), "`workers`:")
    for name, times in Counter(workers).items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} cannot be a worker's name, because its log file has the same name: "
                "use letters, digits, `_`, `-` and `.`, and begin with a letter, a digit or `_`"
            )
        if times > 1:
            raise ValueError(f"{times} workers have the name {name!r}: give each its own")


def parse_variable(text: str) -> tuple[str, str, str]:
    """Return role, name and value of ``NAME=VALUE``, for all workers, or ``ROLE:NAME=VALUE``.

    Raises:
        ValueError: the text cannot be read.
    """
    found = re.fullmatch(r"(?:([A-Za-z0-9_.-]+):)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", text, re.DOTALL)
    if not found:
        raise ValueError(f"cannot read --env {text!r}: write NAME=VALUE for all workers, or ROLE:NAME=VALUE")
    return found[1] or "", found[2], found[3]


def _check_executable(program: str, module: bool) -> None:
    if module:
        raise ValueError("-m and --no-python exclude each other: a module needs Python")
    if shutil.which(program) is None:
        raise FileNotFoundError(
            f"there is no program {program!r} that you may execute: give its path, or leave --no-python out"
        )


def _check_interpreter(interpreter: str) -> None:
    if shutil.which(interpreter) is None:
        raise FileNotFoundError(
            f"there is no interpreter {interpreter!r} that you may execute: give the path of a python, "
            f"or leave --python out to use {sys.executable}"
        )


def _check_script(script: str) -> None:
    path = Path(script)
    if path.is_dir():
        if (path / "__main__.py").is_file():
            return
        raise IsADirectoryError(f"{script!r} is a directory and not a script: give the path of a file in it")
    if not path.exists():
        raise FileNotFoundError(f"there is no script {script!r} in {os.getcwd()}: check the path{_module_hint(script)}")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"you may not read the script {script!r}: check its permissions (`ls -l {script}`)")


def _module_hint(script: str) -> str:
    looks_like_module = re.fullmatch(r"\w+(\.\w+)*", script) and not script.endswith(".py")
    return f", or write -m {script} if it is a module" if looks_like_module else ""


def _check_module(module: str, own_interpreter: bool) -> None:
    # Only the top-level name, because finding ``a.b`` imports ``a``; and only in this interpreter.
    top = module.partition(".")[0]
    if module.endswith(".py") or "/" in module:
        raise ValueError(f"-m takes a module's name, and {module!r} is a path: leave -m out to run it as a script")
    if not top:
        raise ValueError(f"-m takes a module's name like package.module, you gave {module!r}")
    if own_interpreter and PathFinder.find_spec(top, [os.getcwd()]) is None and importlib.util.find_spec(top) is None:
        raise ModuleNotFoundError(
            f"there is no module {top!r} for {sys.executable}: install it, run from the folder that holds it, "
            "or name another interpreter with --python"
        )
