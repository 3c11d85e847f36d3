"""The functions that docs/design/journeys.md names exist; ``python docs/design/write_journeys.py`` writes it anew."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design" / "journeys.md").read_text()


def stops():
    """{file: names of its functions} on the page."""
    found = {}
    for file, functions in re.findall(r"^\d+\. `([\w/]+\.py)`: (.*)$", PAGE, re.MULTILINE):
        found.setdefault(file, set()).update(name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", functions))
    return found


@pytest.mark.parametrize(
    ("file", "names"), sorted(stops().items()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_functions_on_the_page_exist(file, names):
    tree = ast.parse((ROOT / file).read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assert names <= defined | {"__init__"}


def test_the_page_has_five_journeys():
    assert PAGE.count("\n## ") == 5 and len(stops()) > 30
