"""The tests that docs/design/failures.md names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design" / "failures.md"


def named():
    """(file, test or "") for each test that a row of the page names; `::test_b` is in the file named before it."""
    for row in PAGE.read_text().splitlines():
        file = ""
        for match in re.finditer(r"`(tests/[\w/]+\.py)?(?:::(test_\w+))?`", row):
            file = match[1] or file
            yield file, match[2] or ""


def test_every_test_that_the_page_names_exists():
    rows = list(named())
    assert len(rows) > 50
    missing = [(file, test) for file, test in rows if file and f"def {test}" not in ROOT.joinpath(file).read_text()]
    assert not missing
