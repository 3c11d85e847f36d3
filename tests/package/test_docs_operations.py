"""The examples of ``docs/design/operations.md``: each is one file and one check, and nothing else is changed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/design/operations.md"
CALLS = """
import telegrad as tg
assert tg.zeros(2).swish_().tolist() == tg.swish(tg.zeros(2)).tolist() == [0, 0]
assert tg.tensor([1, 2, 4]).neighbour_sums().tolist() == [3, 6]
from telegrad.core.signatures import write
texts = "".join(write.stubs().values())
assert "def swish_(self)" in texts and "import neighbour_sums as neighbour_sums" in texts
"""


@pytest.mark.slow
def test_the_examples_are_all_that_is_needed(tmp_path):
    package = tmp_path / "telegrad"
    for folder in ("core", "nn", "testing", "tools"):
        shutil.copytree(ROOT / folder, package / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "__init__.py", package)
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for path, text in blocks:
        assert not (package / path).exists()
        (package / path).write_text(text)
    for arguments in (["-m", "telegrad.tools.ops", "swish", "swish_", "neighbour_sums"], ["-c", CALLS]):
        subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True, timeout=120)
