"""Stack across workers: the frames of a thread, above them those of its caller on another worker, and so on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..observing.records import Observation, ObservedFrame, ObservedThread


MOST_SECTIONS = 100
PARTS = ("rpc", "core/futures", "rref", "autograd_dist", "agents", "launcher")
INSIDE = tuple(f"/{part}/" for part in PARTS)  # folders of this package that have no program's code


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a stack that is on one worker.

    Attributes:
        worker: its name.
        thread: name of the thread; empty if none waits for the call.
        frames: of the program, the innermost last.
    """

    worker: str
    thread: str
    frames: list[ObservedFrame]

    def __str__(self) -> str:
        """Return it as text, a line for each frame, as pdb writes them."""
        head = f"worker {self.worker!r}, " + (
            f"thread {self.thread}:" if self.thread else "no thread waits for the call:"
        )
        return "\n".join([head, *(f"  {each.file}({each.line}){each.function}()" for each in self.frames)])


def callers(observations: Sequence[Observation], worker: str, ident: int, package: str) -> list[Section]:
    """Return the parts of a thread's stack that are on other workers, the outermost first.

    Args:
        observations: of all workers.
        worker, ident: worker and number of the thread.
        package: folder of this package; its frames are left out.
    """
    found: list[Section] = []
    seen: set[tuple[str, int]] = set()
    by_name = {each.worker: each for each in observations}
    here = _thread(by_name.get(worker), ident)
    while here is not None and here.serves and len(found) < MOST_SECTIONS:
        number, call_id = here.serves
        caller = next((each for each in observations if each.number == number), None)
        if caller is None or (caller.worker, call_id) in seen:
            break
        seen.add((caller.worker, call_id))
        here = next(_waiting(caller, call_id), None)
        found.insert(0, _section(caller, here, package))
    return found


def _thread(observation: Observation | None, ident: int) -> ObservedThread | None:
    threads = observation.threads if observation is not None else []
    return next((each for each in threads if each.ident == ident), None)


def _waiting(caller: Observation, call_id: int) -> Iterator[ObservedThread]:
    """Return the threads, and coroutines, that wait for a call."""
    return (each for each in caller.threads if each.wait is not None and call_id in each.wait.calls)


def _section(caller: Observation, thread: ObservedThread | None, package: str) -> Section:
    if thread is None:
        return Section(caller.worker, "", [])
    return Section(caller.worker, thread.name, [each for each in thread.stack if _of_program(each.file, package)])


def _of_program(file: str, package: str) -> bool:
    if file.startswith(package):
        return not file[len(package) :].startswith(INSIDE)
    return "site-packages" in file or not (file.startswith("<frozen") or "/lib/python3" in file)
