"""Event files for TensorBoard, of what a program logs: ``telegrad.log_to("runs/first")``. They need the extra ``tensorboard``.

``telegrad run --tensorboard DIR`` asks each worker for them by an environment variable, which is read when the first name is
logged.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

from ...base.job_records import EVENT_FILES
from .process_log import program_log
from .series import Point

logger = logging.getLogger("telegrad.recording")
WRITE_SECONDS = 1.0
MOST_WAITING = 100_000  # values that are not written yet; beyond, the oldest are lost

_numbers = count()


class EventFile:
    """File to which every scalar that the process logs is written, about once a second; ``log_to`` makes one.

    Attributes:
        folder: where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waiting: deque[tuple[str, Point]] = deque(maxlen=MOST_WAITING)
        self._writer = _writer(folder)
        self._writing = threading.Lock()
        self._end = threading.Event()
        self._closed = False
        self._process_id = os.getpid()
        self._thread = threading.Thread(target=self._run, name="telegrad-event-file", daemon=True)
        self._thread.start()
        program_log().add_sink(self._add)
        atexit.register(self.close)

    def flush(self) -> None:
        """Write what was logged up to now. It does nothing once the file is closed, and in a forked child: it is its parent's.

        Raises:
            OSError: the file cannot be written.
        """
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        if self._closed or self._process_id != os.getpid():
            return
        with self._writing:
            while self._waiting:
                name, (step, value, time) = self._waiting.popleft()
                summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
                self._writer.write_event(Event(wall_time=time, step=step, summary=summary))
            self._writer.flush()

    def close(self) -> None:
        """Write the rest and close the file. Closing again does nothing."""
        if self._end.is_set():
            return
        self._end.set()
        atexit.unregister(self.close)
        program_log().remove_sink(self._add)
        if self._process_id != os.getpid():  # in a fork the file is its parent's
            return
        self._thread.join()
        try:
            self.flush()
            self._closed = True
            self._writer.close()
        except OSError as error:
            self._lose(error)

    def __enter__(self) -> EventFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _add(self, name: str, point: Point) -> None:
        self._waiting.append((name, point))

    def _run(self) -> None:
        try:
            while not self._end.wait(WRITE_SECONDS):
                if self._waiting:
                    self.flush()
        except OSError as error:
            program_log().remove_sink(self._add)
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        logger.warning("the event file in %s gets no more values: %s", self.folder, error)


def log_to(folder: str | os.PathLike[str]) -> EventFile:
    """Write every scalar that this process logs from now on to an event file, for TensorBoard.

    Args:
        folder: for the file; it is made if it does not exist. TensorBoard shows each folder as a run of its own, so give each
            worker one.

    Returns:
        The file, which is also a context manager. It is closed at the end of the process, if not before.

    Raises:
        ImportError: the extra is not installed.
        OSError: the folder or the file cannot be made.
    """
    return EventFile(Path(os.path.abspath(os.fspath(folder))))  # abspath: the program may change its folder later


def log_as_launched() -> None:
    """Write the event file for which the launcher of this process asks, if it does. A failure is a warning."""
    if not (folder := os.environ.get(EVENT_FILES)):
        return
    try:
        log_to(Path(folder, os.environ.get("TELEGRAD_WORKER", f"process{os.getpid()}")))
    except (ImportError, OSError) as error:
        logger.warning("no event file is written: %s", error)


def _writer(folder: Path) -> Any:
    try:
        from tensorboardX.event_file_writer import EventsWriter
    except ImportError:
        raise ImportError(
            "event files need the package tensorboardX; pip install tensorboardX", name="tensorboardX"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    return EventsWriter(str(folder / "events"), f".{os.getpid()}.{next(_numbers)}")
