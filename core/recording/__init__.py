"""Records of a program's own values: scalars by name (``telegrad.log``), the position of loops (``progress``)."""

from typing import TYPE_CHECKING

from ..late_imports import late_imports
from .process_log import EVENT_FILES as EVENT_FILES
from .process_log import MOST_NAMES as MOST_NAMES
from .process_log import ProgramLog as ProgramLog
from .process_log import program_log as program_log
from .progress import MOST_LOOPS as MOST_LOOPS
from .progress import Loop as Loop
from .progress import loops as loops
from .progress import progress as progress
from .scalars import log_scalars as log_scalars
from .series import MOST_POINTS as MOST_POINTS
from .series import Point as Point
from .series import Series as Series

if TYPE_CHECKING:
    from .event_files import EventFile as EventFile
    from .event_files import log_to as log_to
else:
    __getattr__ = late_imports(__name__, {"EventFile": ".event_files", "log_to": ".event_files"})

__all__ = [
    *("EventFile", "log_to"),
    *("Loop", "Point", "ProgramLog", "Series"),
    *("EVENT_FILES", "MOST_LOOPS", "MOST_NAMES", "MOST_POINTS"),
    *("log_scalars", "loops", "progress", "program_log"),
]
