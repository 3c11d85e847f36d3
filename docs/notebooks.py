"""Notebooks of the tutorials: the same page, whose blocks of code are cells, with what the page shows as their output.

``docs/conf.py`` writes them before each build; each page of the site links to its own. The tests run them in a kernel.
"""

from __future__ import annotations

import base64
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat.v4 as notebook
from nbformat import NotebookNode, writes
from page_blocks import Block, parts

TUTORIALS = Path(__file__).with_name("tutorials")
PICTURE = re.compile(r"!\[(.*?)\]\((.*?)\)")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https:)[^)]*\)")


def write(folder: Path) -> None:
    """Write all notebooks into a folder, one for each tutorial."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages():
        (folder / f"{page.stem}.ipynb").write_text(writes(of(page)))


def pages() -> list[Path]:
    """Return the tutorials that have blocks to run."""
    return sorted(page for page in TUTORIALS.glob("*.md") if page.name != "README.md")


def of(page: Path) -> NotebookNode:
    """Return the notebook of a page."""
    cells = list[NotebookNode]()
    for part in parts(page):
        if isinstance(part, str):
            cells += _text(part, page.parent)
        elif part.kind == "output" and cells and cells[-1].cell_type == "code":
            cells[-1].outputs = [notebook.new_output("stream", name="stdout", text=part.text)]
        else:
            cells += _cells(part)
    for number, cell in enumerate(cells):
        cell.id = f"cell{number}"  # the same in each build
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return notebook.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _text(text: str, folder: Path) -> list[NotebookNode]:
    """Return a cell of text, if there is any: links to other pages as plain words, pictures in the cell itself."""
    attachments = {}
    for path in (match[2] for match in PICTURE.finditer(text)):
        name, data = Path(path).name, (folder / path).read_bytes()
        kind = "image/svg+xml" if name.endswith(".svg") else "image/png"
        attachments[name] = {kind: base64.b64encode(data).decode()}
        text = text.replace(f"({path})", f"(attachment:{name})")
    text = LINK.sub(r"\1", text).strip()
    return [notebook.new_markdown_cell(text, **({"attachments": attachments} if attachments else {}))] if text else []


def _cells(block: Block) -> Iterator[NotebookNode]:
    """Return the cells of a block; what is not run stays text."""
    if block.kind == "prompt":
        yield from _prompts(block.text)
    elif block.kind == "file":
        yield notebook.new_code_cell(f"%%writefile {block.file}\n{block.text.partition(chr(10))[2].strip()}")
    elif block.kind == "commands":
        yield notebook.new_code_cell(f"%%bash\n{block.text.strip()}")
    else:
        yield notebook.new_markdown_cell(f"```{block.language}\n{block.text}```")


def _prompts(text: str) -> Iterator[NotebookNode]:
    """Return cells of a session: each ends with an example that shows something, as a cell shows its last value only."""
    sources = list[str]()
    for example in doctest.DocTestParser().get_examples(text):
        sources.append(example.source.rstrip())
        if example.want:
            yield _shown("\n".join(sources), example.want.rstrip(), example.exc_msg)
            sources = []
    if sources:
        yield notebook.new_code_cell("\n".join(sources))


def _shown(source: str, want: str, error: str | None) -> NotebookNode:
    """Return a cell with its output: a value, or the error that the page expects, after which a run goes on."""
    if error is None:
        return notebook.new_code_cell(source, outputs=[notebook.new_output("stream", name="stdout", text=want)])
    name, _, value = error.strip().partition(": ")
    output: Any = notebook.new_output("error", ename=name, evalue=value, traceback=want.splitlines())
    return notebook.new_code_cell(source, outputs=[output], metadata={"tags": ["raises-exception"]})
