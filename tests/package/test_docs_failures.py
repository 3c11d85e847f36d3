"""The tests that the pages about failures name exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "design" / name for name in ("failures.md", "losses.md", "admission.md")]


def named():
    """(file, test or "") for each test that a row of the pages names; `::test_b` is in the file named before it."""
    for row in "\n".join(page.read_text() for page in PAGES).splitlines():
        file = ""
        for match in re.finditer(r"`(tests/[\w/]+\.py)?(?:::(test_\w+))?`", row):
            file = match[1] or file
            yield file, match[2] or ""


def test_every_test_that_the_pages_name_exists():
    rows = list(named())
    assert len(rows) > 50
    missing = [(file, test) for file, test in rows if file and f"def {test}" not in ROOT.joinpath(file).read_text()]
    assert not missing
