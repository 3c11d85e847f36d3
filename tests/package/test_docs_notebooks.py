"""Notebooks of the tutorials: what their cells are, and that a kernel runs each with the outputs that its page shows."""

import os
import re
import sys
from pathlib import Path

import pytest
from helpers.pages import CHANGING, ROOT, blocks, same_output

nbformat = pytest.importorskip("nbformat", reason="no notebooks here: pip install nbformat")

import notebooks  # noqa: E402
import tutorial_programs  # noqa: E402

NUMBER = (r"\d+\.\d+", "NUMBER")
PAGES = [page.stem for page in notebooks.pages()]


@pytest.fixture(scope="module", params=PAGES)
def page(request):
    return notebooks.TUTORIALS / f"{request.param}.md"


def test_a_page_has_a_valid_notebook(page):
    document = notebooks.of(page)
    nbformat.validate(document)
    assert notebooks.of(page) == document, "the same in each build"
    run = [block for block in blocks(page) if block.kind in ("file", "commands", "prompt")]
    code = [cell for cell in document.cells if cell.cell_type == "code"]
    assert len(code) >= len(run) > 0
    assert not [cell.source for cell in code if cell.source.startswith((">>>", "..."))]
    text = "".join(cell.source for cell in document.cells if cell.cell_type == "markdown")
    assert not re.search(r"\]\((?!https:|attachment:)", text), "a link that leads nowhere from a notebook"


def test_programs_for_type_checkers_have_names_of_their_own(tmp_path):
    tutorial_programs.write(tmp_path)
    assert len(list(tmp_path.glob("session_*.py"))) >= 4
    for path in tmp_path.glob("*.py"):
        compile(path.read_text(), path.name, "exec")


def said(cell):
    """Return what a cell wrote to standard output, without colors and the launcher's own lines."""
    text = "".join(each["text"] for each in cell.outputs if each.get("name") == "stdout")
    lines = re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("telegrad: starts", "telegrad: 3", "logs: ")))


@pytest.mark.processes
@pytest.mark.soak
def test_a_kernel_runs_it(page, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="no notebooks here: pip install nbclient ipykernel")
    if any(block.comment.startswith("needs") for block in blocks(page)):
        pytest.skip("it has commands that are not on every machine")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    document = notebooks.of(page)
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    shown = [said(cell) for cell in cells]
    nbclient.NotebookClient(document, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell, expected in zip(cells, shown):
        if cell.source.startswith("%%bash"):
            assert same_output(said(cell), expected, [*CHANGING, NUMBER]), f"{cell.source}\nprinted:\n{said(cell)}"
