"""Records of a program's own values: scalars by name (``telegrad.log``), the position of loops (``progress``)."""

from .progress import MOST_LOOPS as MOST_LOOPS
from .progress import Loop as Loop
from .progress import loops as loops
from .progress import progress as progress
from .scalars import MOST_NAMES as MOST_NAMES
from .scalars import ProgramLog as ProgramLog
from .scalars import log_scalars as log_scalars
from .scalars import program_log as program_log
from .series import MOST_POINTS as MOST_POINTS
from .series import Point as Point
from .series import Series as Series

__all__ = [
    *("Loop", "Point", "ProgramLog", "Series"),
    *("MOST_LOOPS", "MOST_NAMES", "MOST_POINTS"),
    *("log_scalars", "loops", "progress", "program_log"),
]
