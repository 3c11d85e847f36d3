"""Programs of the tutorials as files, for type checkers: ``python docs/programs.py FOLDER``.

The prompts of a page are one file, because they are one session.
"""

from __future__ import annotations

import doctest
import sys
from collections.abc import Iterator
from pathlib import Path

from page_blocks import blocks

TUTORIALS = Path(__file__).with_name("tutorials")


def programs() -> Iterator[tuple[str, str]]:
    """Return name and text of each program; no two have the same name."""
    for page in sorted(TUTORIALS.glob("*.md")):
        session = ""
        for block in blocks(page):
            if block.kind == "prompt":
                session += "".join(example.source for example in doctest.DocTestParser().get_examples(block.text))
            elif block.file and block.file.endswith(".py"):
                yield block.file, block.text
        if session:
            yield f"session_{page.stem}.py", session


def write(folder: Path) -> None:
    """Write the programs into a folder.

    Raises:
        ValueError: two tutorials have files of the same name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    for name, text in programs():
        if (folder / name).exists():
            raise ValueError(f"two tutorials have a file {name}: give one of them another name")
        (folder / name).write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
