"""Promises of docs/security.md, and the tests that it names for them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
PROMISES = PAGE.partition("## What is promised\n")[2].partition("\n## ")[0].strip().split("\n\n")


def test_each_promise_names_a_test():
    assert len(PROMISES) >= 12
    assert [
        text for text in PROMISES if not (text.startswith("**") and re.search("→.*`.*test_", text, re.DOTALL))
    ] == []


def test_the_tests_that_the_page_names_exist():
    files, names = set(re.findall(r"`(tests/\S+?\.py)`", PAGE)), set(re.findall(r"`(test_\w+)`", PAGE))
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in (ROOT / "tests").rglob("test_*.py")}
    assert files and files <= set(texts)
    assert names and names <= set(re.findall(r"def (test_\w+)", "".join(texts.values())))
