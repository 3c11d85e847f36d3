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
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HISTORY = {"CHANGELOG.md"}  # pages about what was
FENCE = re.compile(r"^( *)(?:<!-- ([^\n]*?) -->\n+ *)?```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# Lines that a page need not show: the launcher's, and those about a wait that a busy machine makes long.
UNSHOWN = re.compile(r"telegrad: |logs: |\w+ \| .* waits in (shutdown|_barrier|init_rpc) for ")
CHANGING = [(r"\d+\.\d+ ?(?:s|ms|us|%)(?!\w)", "TIME"), (r"\d{4}-\d\d-\d\d-\d{6}", "DATE"), ("-----+", "-----")]


@dataclass(frozen=True)
class Block:
    """Block of code, in the language that its page gives, and the page's comment on it."""

    place: str
    language: str
    text: str
    comment: str

    @property
    def file(self):
        """The name of the file that it is, or ``None``."""
        named = re.match(r"# ([\w/.]+\.\w+)\n", self.text)
        return named and named[1]

    @property
    def kind(self):
        """Way in which it is run: ``None`` if neither the block nor the page says so."""
        if re.match("not run: .|run by tests/.", self.comment):
            return "left out"
        if self.text.startswith(">>> "):
            return "prompt"
        kinds = {"sh": "commands", "text": "output", "mermaid": "picture"}
        return "file" if self.file else kinds.get(self.language)

    @property
    def changing(self):
        """Patterns of what is another in each run, and what is put in their place."""
        return [*CHANGING, (r"\d+\.\d+", "NUMBER")] if self.comment == "numbers differ" else CHANGING

    @property
    def commands(self):
        """Its commands, without lines that are comments."""
        return [line for line in self.text.splitlines() if line and not line.startswith("#")]


def blocks(page):
    """Return the blocks of a page, in order."""
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start(3)) + 1}"
        indented, comment, language, body = match.groups()
        found.append(Block(place, language, textwrap.dedent(body) if indented else body, comment or ""))
    return found


def pages():
    """Return the pages that tell what is so, in order."""
    found = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        ROOT / "rref" / "PROTOCOL.md",
        ROOT / "tools" / "README.md",
    ]
    return sorted(page for page in found if str(page.relative_to(ROOT)) not in HISTORY)


def same_output(said, expected, changing=CHANGING):
    """Return whether a program wrote what its page says; times, dates and other ``changing`` patterns are equal.

    Lines of ``UNSHOWN`` are left out unless the page shows them.
    """
    for pattern, replacement in changing:
        said, expected = re.sub(pattern, replacement, said), re.sub(pattern, replacement, expected)
    shown = expected.splitlines()
    lines = [line for line in said.splitlines() if line in shown or not UNSHOWN.match(line)]
    pattern = "\n".join("(?s:.*?)" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") for line in shown)
    return re.fullmatch(pattern, "\n".join(lines)) is not None
