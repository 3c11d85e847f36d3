"""Take the pictures of ``docs/dashboard.md``: of real jobs, by the tests of the page, which need Chromium.

Running this file writes ``dashboard*.png`` beside it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
TESTS = Path("tests", "launcher")
PICTURES = {  # by name of the tests, the name here
    "deadlock_light": "dashboard",
    "curves_dark": "dashboard_dark",
    "backward_7_light": "dashboard_backward",
    "flames": "dashboard_flames",
}


def main() -> None:
    """Run the tests, and keep the pictures that the page shows."""
    with tempfile.TemporaryDirectory() as folder:
        tests = [TESTS / "test_dashboard_pictures.py", TESTS / "test_dashboard_profiles.py"]
        environment = {**os.environ, "TELEGRAD_PICTURES": folder}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *tests], cwd=FOLDER.parents[1], env=environment, check=True
        )
        for name, kept in PICTURES.items():
            shutil.copy(Path(folder, f"{name}.png"), FOLDER / f"{kept}.png")


if __name__ == "__main__":
    main()
