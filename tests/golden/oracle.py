"""The numbers of PyTorch that tests compare with: the recorders here ask PyTorch for them, and this program writes them.

    TORCH/bin/python tests/golden/oracle.py             # records everything anew
    TORCH/bin/python tests/golden/oracle.py amp errors  # what these recorders record
    TORCH/bin/python tests/golden/oracle.py --check     # writes nothing; says where files differ, and exits with 1 then

``TORCH`` is an environment with torch (``make peers`` makes one). Tests need none: ``tests/helpers/golden.py`` reads the files.

A recorder is a file ``record_NAME.py``. Its ``recorded()`` returns what JSON can hold, by the name of the file in which it is
to be. It runs in a process of its own, for it sets seeds and default dtypes. (``record_checkpoints.py`` is none: it writes
files of torch.save. ``python -m telegrad.tools.parity`` compares with PyTorch as it runs, and records nothing.)
"""

import argparse
import importlib
import json
import math
import multiprocessing
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
TOLERANCE = 1e-6  # that of the tests in single precision
NAMES = sorted({path.stem.removeprefix("record_") for path in FOLDER.glob("record_*.py")} - {"checkpoints"})


def recorded(name):
    """Return what a recorder records, as texts of JSON by the names of their files."""
    warnings.simplefilter("ignore")
    contents = importlib.import_module(f"record_{name}").recorded()
    return {file: json.dumps({"torch": torch.__version__, **content}) + "\n" for file, content in contents.items()}


def difference(held, new, place=""):
    """Return where two contents differ; ``None`` for nowhere. Another processor may add numbers up in another order."""
    if isinstance(held, float) and isinstance(new, float):
        same = math.isclose(held, new, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (held != held and new != new)
    elif isinstance(held, dict) and isinstance(new, dict) and held.keys() == new.keys():
        return next(filter(None, (difference(held[key], new[key], f"{place}.{key}") for key in held)), None)
    elif isinstance(held, list) and isinstance(new, list) and len(held) == len(new):
        pairs = enumerate(zip(held, new))
        return next(filter(None, (difference(*both, f"{place}[{number}]") for number, both in pairs)), None)
    else:
        same = held == new
    return None if same else f"{place}: {held!r:.60} and now {new!r:.60}"


def main():
    """Record, or check; return the exit code."""
    parser = argparse.ArgumentParser(description="Record numbers of PyTorch.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"recorders: {', '.join(NAMES)}; default all")
    parser.add_argument("--check", action="store_true", help="write nothing, and say where files differ")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"there is no recorder {', '.join(sorted(unknown))}")
    differ = False
    for name in options.names or NAMES:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            texts = process.submit(recorded, name).result()
        for file, text in texts.items():
            path = FOLDER / f"{file}.json"
            held, new = json.loads(path.read_text()) if path.exists() else {}, json.loads(text)
            if found := difference({**held, "torch": None}, {**new, "torch": None}):
                print(f"{path.name}{found}", flush=True)
                differ = True
            if not options.check:
                path.write_text(text)
    return int(options.check and differ)


if __name__ == "__main__":
    sys.exit(main())
