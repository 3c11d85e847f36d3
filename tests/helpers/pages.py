"""Pages of the project, and what counts as the same output. ``docs/page_blocks.py`` tells how their blocks are run."""

import re

from page_blocks import CHANGING, ROOT, blocks

__all__ = ["CHANGING", "HISTORY", "ROOT", "blocks", "pages", "same_output"]

HISTORY = {"CHANGELOG.md"}  # pages about what was
# Lines that a page need not show: the launcher's, and those about a wait that a busy machine makes long.
UNSHOWN = re.compile(
    r"telegrad: |logs: |\w+ +\| (.* waits in (shutdown|_barrier|init_rpc) for "
    r"|why worker '|  waiting for it: |  \d+\. '|the call of .* on the way)"
)


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
