"""Files of a program, told from those of Python, of this package and of other installed ones by where they are."""

import os
import sys
from pathlib import Path

INSTALLED = f"{os.sep}site-packages{os.sep}"
OWN_FOLDER = f"{Path(__file__).resolve().parents[2]}{os.sep}"
OWN_EXAMPLES = f"{OWN_FOLDER}examples{os.sep}"
OF_PYTHON = (f"{Path(os.__file__).parent}{os.sep}", f"{sys.base_prefix}{os.sep}lib{os.sep}", "<frozen ")


def is_programs(file: str) -> bool:
    """Return whether a file is the program's own. This package's examples are programs as well."""
    if file.startswith(OWN_FOLDER) and INSTALLED not in file.removeprefix(OWN_FOLDER):
        return file.startswith(OWN_EXAMPLES)
    return INSTALLED not in file and not file.startswith(OF_PYTHON)
