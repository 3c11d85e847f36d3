"""The program on the page about PyTorch's models prints what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import telegrad

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")


@pytest.mark.processes
def test_the_program_does_what_the_page_says(tmp_path):
    page = (Path(telegrad.__file__).parent / "docs" / "guests.md").read_text()
    program, output = re.findall(r"<!-- run by tests/guests/test_docs.py -->\n```\w+\n(.*?)```", page, re.DOTALL)
    (tmp_path / "layers.py").write_text(program)
    command = [sys.executable, "-m", "telegrad.launcher", "run", "-n", "2", "layers.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert output.strip() in done.stdout + done.stderr
