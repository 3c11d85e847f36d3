"""The functions that docs/design/journeys.md names exist; ``python docs/design/write_journeys.py`` writes it anew."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design" / "journeys.md").read_text()


def stops():
    """{file: names of its functions} on the page."""
    found = {}
    for file, functions in re.findall(r"^\d+\. `([\w/]+\.py)`: (.*)$", PAGE, re.MULTILINE):
        found.setdefault(file, set()).update(name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", functions))
    return found


def test_functions_on_the_page_exist():
    unknown = {file: names - defined(file) for file, names in stops().items()}
    assert not {file: names for file, names in unknown.items() if names}


def defined(file):
    """Return the names of a file's functions."""
    nodes = ast.walk(ast.parse((ROOT / file).read_text()))
    return {"__init__", *(node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))}


def test_the_page_has_five_journeys():
    assert PAGE.count("\n## ") == 5 and len(stops()) > 30
