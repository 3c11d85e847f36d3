"""Search for what a test leaves behind: threads, processes, files and sockets, agents, references, autograd contexts.

``Watch`` compares what there is with what there was. Some things end a moment after the call that ends them, so it looks
again until nothing is left or its time is over. While a watch is on, references, agents and threads remember where they
were made.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..rpc.extend import Agent, open_agents
from ..rref import RRef

LEFT_BEHIND = "this test left something behind"  # begins the message of a test that fails because of that
WAIT_SECONDS = 5.0
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")  # Python's own, one for the process
GRPC_POLLER = "_poll_wrapper"  # gRPC's own thread, which it keeps
PACKAGE = str(Path(__file__).parents[1])
TESTS = str(Path(PACKAGE) / "tests")

_births: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


class Watch:
    """Watch over one test: it records what there is at the beginning; ``leaks`` returns what is new at the end."""

    def __init__(self) -> None:
        self._undo = [
            _remember_births(RRef, "_attach"),
            _remember_births(Agent, "__init__"),
            _remember_births(threading.Thread, "start"),
        ]
        self.agents = open_agents()
        self._threads = set(threading.enumerate())
        self._processes = set(_children())
        self._files = set(_files())

    def leaks(self, seconds: float = WAIT_SECONDS) -> list[str]:
        """Return what is still new after at most ``seconds``, in words, and end the watch."""
        for undo in self._undo:
            undo()
        deadline = time.monotonic() + seconds
        while found := self._found():
            if time.monotonic() > deadline:
                break
            gc.collect()
            time.sleep(0.01)
        return found

    def _found(self) -> list[str]:
        return [*self._agent_leaks(), *self._thread_leaks(), *self._process_leaks(), *self._file_leaks()]

    def _agent_leaks(self) -> Iterable[str]:
        for agent in open_agents():
            if agent not in self.agents:
                yield f"the agent {agent.name!r} is open, {_birth(agent)}"
            elif rest := {key: count for key, count in _holdings(agent).items() if count}:
                yield f"worker {agent.name!r} still holds {rest}{_living_references(agent)}"

    def _thread_leaks(self) -> Iterable[str]:
        for thread in set(threading.enumerate()) - self._threads:
            if GRPC_POLLER not in thread.name and not any(_works_for(thread, agent) for agent in self.agents):
                yield f"the thread {thread.name!r} runs, {_birth(thread)}; it is at {_position(thread)}"

    def _process_leaks(self) -> Iterable[str]:
        for process in set(_children()) - self._processes:
            command = _command(process)
            if not any(helper in command for helper in HELPERS):
                yield f"the child process {process} lives: {command or '(not waited for)'}"

    def _file_leaks(self) -> Iterable[str]:
        if self.agents:
            return  # their connections come and go
        for number, name in set(_files()) - self._files:
            yield f"the file descriptor {number} is open: {name}"


def _holdings(agent: Agent) -> dict[str, int]:
    info = agent.debug_info()
    return {
        "pending_calls": info["pending_calls"],
        "contexts": info["contexts"],
        "generators": info["generators"],
        **info["references"],
    }


def _living_references(agent: Agent) -> str:
    living = [reference for reference in list(_births) if isinstance(reference, RRef)]
    mine = [f"\n    {reference}, {_birth(reference)}" for reference in living if reference._context.agent is agent]
    return "".join(mine)


def _works_for(thread: threading.Thread, agent: Agent) -> bool:
    return thread.name == "telegrad-io" or thread.name.startswith(f"telegrad-{agent.name}-")


def _remember_births(kind: type, method: str) -> Callable[[], None]:
    original = getattr(kind, method)

    def remembering(self: Any, *args: Any, **kwargs: Any) -> Any:
        _births[self] = _user_line()
        return original(self, *args, **kwargs)

    setattr(kind, method, remembering)
    return lambda: setattr(kind, method, original)


def _user_line() -> str:
    """Return the innermost line outside of the package, or the outermost of all."""
    frame = sys._getframe(2)
    while frame.f_back is not None and not _is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_users(file: str) -> bool:
    return file.startswith(TESTS) or not file.startswith((PACKAGE, sys.prefix, sys.base_prefix, "<"))


def _birth(thing: Any) -> str:
    return f"made at {_births.get(thing, 'a place that nobody watched')}"


def _position(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})" if frame else "its end"


def _children() -> list[int]:
    found: list[int] = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children") as children:
                found += map(int, children.read().split())
        except OSError:
            continue  # the thread ended
    return found


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return ""


def _files() -> list[tuple[str, str]]:
    """Return open files, pipes and sockets, without the kernel's anonymous objects and socket pairs: gRPC keeps some."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue  # it was the listing's own
        if not name.startswith("anon_inode:") and not _is_socket_pair(int(number), name):
            found.append((number, name))
    return found


def _is_socket_pair(number: int, name: str) -> bool:
    if not name.startswith("socket:"):
        return False
    try:
        with socket.socket(fileno=os.dup(number)) as copy:
            return copy.family == socket.AF_UNIX and not copy.getsockname() and not copy.getpeername()
    except OSError:
        return False
