"""Stacks of a worker that does not answer, which it writes at a signal: read from its file."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress

from ...base.job_folder import JobFolder
from ...base.job_records import DUMPS
from ...rpc.observing import ObservedFrame, ObservedThread
from .jobs import LocalWorker
from .program_files import INSTALLED, is_programs

DUMP_SECONDS = 1.0
DUMP_QUIET_SECONDS = 0.05  # after the last byte
MOST_DUMP_BYTES = 1 << 20
THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-f]+)(?: \[(.*)\])?")
FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')


def dumped_threads(worker: LocalWorker) -> list[ObservedThread]:
    """Return a worker's threads, that which most likely holds the interpreter first; none if they cannot be had."""
    if not worker.record.dump_signal:
        return []
    with suppress(OSError):
        return sorted(parse_dump(_dump(worker)), key=_waits)
    return []


def _dump(worker: LocalWorker) -> str:
    with JobFolder(worker.folder) as folder:
        file = folder.open(worker.record.stem + DUMPS, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one command at a time
        begin = os.fstat(file).st_size
        if not worker.send_handled_signal(worker.record.dump_signal):
            return ""
        _wait_for_end(file, begin)
        text = os.pread(file, MOST_DUMP_BYTES, begin).decode(errors="backslashreplace")
        os.ftruncate(file, 0)  # its process appends, wherever the end is
        return text
    finally:
        os.close(file)


def _wait_for_end(file: int, begin: int) -> None:
    """Wait until the dump has begun and no more comes: it has no mark at its end."""
    deadline, last = time.monotonic() + DUMP_SECONDS, begin
    while time.monotonic() < deadline:
        time.sleep(DUMP_QUIET_SECONDS)
        now = os.fstat(file).st_size
        if now == last != begin:
            return
        last = now


def parse_dump(text: str) -> Iterator[ObservedThread]:
    """Yield the threads of a dump of ``faulthandler``, whose innermost frames come first."""
    threads: list[tuple[int, str, list[ObservedFrame]]] = []
    for line in text.splitlines():
        if begins := THREAD.match(line):
            threads.append((int(begins[1], 16), begins[2] or "", []))
        elif threads and (frame := FRAME.fullmatch(line)):
            number = int(frame[2]) if frame[2].isdecimal() else 0
            threads[-1][2].append(ObservedFrame(frame[1], number, frame[3]))
    for ident, name, frames in threads:
        at = next((each for each in frames if is_programs(each.file)), None)
        yield ObservedThread(ident, name, frames[::-1], at=at)


def _waits(thread: ObservedThread) -> bool:
    """Return whether Python or the library keeps a thread waiting: then its innermost frame is theirs, not the program's."""
    if not thread.stack or thread.at is None:
        return True
    innermost = thread.stack[-1].file
    return not is_programs(innermost) and INSTALLED not in innermost
