"""Records the losses of the programs in tests/programs/torch, for tests/compat/test_programs.py."""

import subprocess
import sys
from pathlib import Path


def losses(script):
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
    found = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("loss ")]
    assert found, f"{script} printed no loss:\n{done.stdout}{done.stderr}"
    return found


def recorded():
    scripts = sorted((Path(__file__).parents[1] / "programs" / "torch").glob("*.py"))
    return {"programs": {script.stem: losses(script) for script in scripts}}
