"""Records the losses of the programs in tests/programs/torch, for tests/compat/test_programs.py. Needs torch.

python tests/golden/record_programs.py
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def losses(script):
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
    found = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("loss ")]
    assert found, f"{script} printed no loss:\n{done.stdout}{done.stderr}"
    return found


if __name__ == "__main__":
    recorded = {script.stem: losses(script) for script in sorted((HERE.parent / "programs" / "torch").glob("*.py"))}
    (HERE / "programs.json").write_text(json.dumps(recorded, indent=1) + "\n")
