"""Blocks of code on the project's pages, and how each is run.

The kind of a block is seen from the block itself:

* ``>>> `` begins a prompt. All prompts of a page are one session, in one interpreter.
* A first line ``# name.py`` makes a file of that name.
* A block of ``sh`` has commands, one a line, which are run in the folder of the page's files.
* A block of ``text`` is what the commands before it print. ``...`` stands for any text in a line, a line of it for lines.

A comment in the line before the block, which readers of the page do not see, adds to it:

* ``<!-- not run: REASON -->`` and ``<!-- run by tests/... -->`` leave the block out.
* ``<!-- needs NAME -->`` runs it only if there is such a command or package, ``<!-- needs 3.11 -->`` with such a Python or a
  newer one.
* ``<!-- together -->`` starts all its commands at the same time; ``<!-- together, NAME:PORT is here -->`` also puts this
  machine and a free port in the place of an address.
* ``<!-- numbers differ -->`` is said of an output whose decimal fractions are others in each run.

The tests run the blocks, ``notebooks.py`` makes cells of them, and ``tutorial_programs.py`` files for type checkers.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^( *)(?:<!-- ([^\n]*?) -->\n+ *)?```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CHANGING = [(r"\d+\.\d+ ?(?:s|ms|us|%)(?!\w)", "TIME"), (r"\d{4}-\d\d-\d\d-\d{6}", "DATE"), ("-----+", "-----")]


@dataclass(frozen=True)
class Block:
    """Block of code, in the language that its page gives, and the page's comment on it."""

    place: str
    language: str
    text: str
    comment: str

    @property
    def file(self) -> str | None:
        """The name of the file that it is, or ``None``."""
        named = re.match(r"# ([\w/.]+\.\w+)\n", self.text)
        return named and named[1]

    @property
    def kind(self) -> str | None:
        """Way in which it is run: ``None`` if neither the block nor the page says so."""
        if re.match("not run: .|run by tests/.", self.comment):
            return "left out"
        if self.text.startswith(">>> "):
            return "prompt"
        kinds = {"sh": "commands", "text": "output", "mermaid": "picture"}
        return "file" if self.file else kinds.get(self.language)

    @property
    def changing(self) -> list[tuple[str, str]]:
        """Patterns of what is another in each run, and what is put in their place."""
        return [*CHANGING, (r"\d+\.\d+", "NUMBER")] if self.comment == "numbers differ" else CHANGING

    @property
    def commands(self) -> list[str]:
        """Its commands, without lines that are comments."""
        return [line for line in self.text.splitlines() if line and not line.startswith("#")]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    return [part for part in parts(page) if isinstance(part, Block)]


def parts(page: Path) -> list[str | Block]:
    """Return the texts and the blocks of a page, in order."""
    text, found, end = page.read_text(), list["str | Block"](), 0
    for match in FENCE.finditer(text):
        place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start(3)) + 1}"
        indented, comment, language, body = match.groups()
        block = Block(place, language, textwrap.dedent(body) if indented else body, comment or "")
        found += [text[end : match.start()], block]
        end = match.end()
    return [*found, text[end:]]
