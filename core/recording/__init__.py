"""Records of a program's own values: scalars by name (``telegrad.log``), the position of loops (``progress``)."""

from typing import TYPE_CHECKING

from ...base.late_imports import late_imports

if TYPE_CHECKING:
    from .event_files import EventFile as EventFile
    from .event_files import log_to as log_to
    from .loop_positions import MOST_LOOPS as MOST_LOOPS
    from .loop_positions import Loop as Loop
    from .loop_positions import loops as loops
    from .loop_positions import progress as progress
    from .process_log import MOST_NAMES as MOST_NAMES
    from .process_log import ProgramLog as ProgramLog
    from .process_log import program_log as program_log
    from .scalars import log_scalars as log_scalars
    from .series import MOST_POINTS as MOST_POINTS
    from .series import Point as Point
    from .series import Series as Series
else:  # few programs log
    __getattr__ = late_imports(
        __name__,
        {
            **dict.fromkeys(
                (
                    "EventFile",
                    "log_to",
                ),
                ".event_files",
            ),
            **dict.fromkeys(
                (
                    "MOST_NAMES",
                    "ProgramLog",
                    "program_log",
                ),
                ".process_log",
            ),
            **dict.fromkeys(
                (
                    "MOST_LOOPS",
                    "Loop",
                    "loops",
                    "progress",
                ),
                ".loop_positions",
            ),
            **dict.fromkeys(("log_scalars",), ".scalars"),
            **dict.fromkeys(
                (
                    "MOST_POINTS",
                    "Point",
                    "Series",
                ),
                ".series",
            ),
        },
    )

__all__ = [
    *("EventFile", "log_to"),
    *("Loop", "Point", "ProgramLog", "Series"),
    *("MOST_LOOPS", "MOST_NAMES", "MOST_POINTS"),
    *("log_scalars", "loops", "progress", "program_log"),
]
