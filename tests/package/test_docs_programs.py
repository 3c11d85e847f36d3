"""Every block of code on every page is run as the page says, or the page says why not."""

from pathlib import Path

import pytest
from helpers.followed import follow
from helpers.pages import ROOT, blocks, pages, same_output

NOT_RUN = 16  # blocks: installations, clusters, servers. Add one only if no machine of ours can run it.
QUICK_TUTORIALS = {"first_job.md", "parameter_server.md", "from_pytorch.md", "crashes.md"}  # `make docs-test` has all
RARE = {"docs/own_operations.md"}  # it shows what tests of functions and operations hold
LONG = {"docs/hosts.md", "docs/launching.md"}  # and the tutorials, but for the first one
BLOCKS = [block for page in pages() for block in blocks(page)]
RUN = [page for page in pages() if any(block.kind != "left out" for block in blocks(page))]


def test_each_block_says_how_it_is_run():
    assert sum(page.read_text().count("```") for page in pages()) == 2 * len(BLOCKS) > 100
    assert [block.place for block in BLOCKS if block.kind is None] == []


def test_what_is_not_run_says_why():
    left_out = [block for block in BLOCKS if block.kind == "left out"]
    not_run = [block for block in left_out if block.comment.startswith("not run: ")]
    assert len(not_run) == NOT_RUN, "\n".join(f"{block.place}: {block.comment}" for block in not_run)
    others = [block for block in left_out if block not in not_run]
    assert [b.place for b in others if not (ROOT / b.comment.removeprefix("run by ")).is_file()] == []


def marks(page):
    folder, _, name = page.rpartition("/")
    if page in RARE or (folder == "docs/tutorials" and name not in QUICK_TUTORIALS):
        return [pytest.mark.soak]
    return [pytest.mark.long] if page in LONG else []


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(name, marks=marks(name)) for name in (str(page.relative_to(ROOT)) for page in RUN)]
)
def test_a_page_does_what_it_says(page, tmp_path):
    missing = follow(Path(ROOT, page), tmp_path)
    if missing:
        pytest.skip("all was run but " + ", ".join(f"{block.place}, which {block.comment}" for block in missing))


@pytest.mark.parametrize(
    ("said", "expected", "same"),
    [
        ("a\n", "a", True),
        ("a b", "a c", False),
        ("loss 0.0231\nend", "loss 0.0...\nend", True),
        ("a\nb\nc", "a\n...\nc", True),
        ("a\nb\nc", "a...c", False),
        ("took 1.3 s", "took 0.9 s", True),
        ("logs: runs/2026-11-24-183835-hello/", "logs: runs/2020-01-01-000000-hello/", True),
        ("a\na warning", "a", False),
        ("telegrad: 2 workers\nworker0 | a\nlogs: x/", "worker0 | a", True),
        ("telegrad: 2 workers\nlogs: x/", "telegrad: 3 workers", False),
        ("worker1 | worker 'worker1' waits in shutdown for 'worker0'\nworker0 | a", "worker0 | a", True),
        ("ps  | why worker 'ps' waits:\nps  |   1. 'ps' (MainThread) waits\nps  | a", "ps  | a", True),
    ],
)
def test_outputs_are_compared(said, expected, same):
    assert same_output(said, expected) is same
