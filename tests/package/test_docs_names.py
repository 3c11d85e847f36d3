"""Files, anchors, modules and targets of make that the pages name exist."""

import re
import subprocess
from pathlib import Path

import pytest
from helpers.pages import ROOT, pages

PATH = re.compile(r"[\w./-]+\.(?:py|md|toml|proto|json|svg)|(?:[\w.-]+/)+[\w.-]*")
MADE = {"docs/_build/html", "index.json", "telegrad_runs/"}  # by programs, where they are run
PAGES = pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in pages()])


def prose(page):
    """Return a page's text without its blocks of code."""
    return re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@PAGES
def test_links_lead_somewhere(page):
    here, wrong = ROOT / page, []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        target = here.parent / path if path else here
        if not link.startswith("https://") and not (target.is_file() and (not anchor or anchor in anchors(target))):
            wrong.append(link)
    assert not wrong


@PAGES
def test_files_exist(page, tracked):
    """A path is relative to the repository, to the page, or to the package that the page is about (rpc_members.md: rpc)."""
    stem = Path(page).stem
    places = [ROOT, (ROOT / page).parent, ROOT / stem, ROOT / stem.partition("_")[0]]
    named = {name for name in re.findall(r"`([^`\n]+)`", prose(page)) if PATH.fullmatch(name)} - MADE
    assert {
        name for name in named if name not in tracked and not any((place / name).exists() for place in places)
    } == set()


@pytest.fixture(scope="module")
def tracked():
    """The names of all files in the repository, without their folders."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return {path.rpartition("/")[2] for path in listed.splitlines()}


@PAGES
def test_modules_and_targets_exist(page):
    text = (ROOT / page).read_text()
    modules = {name.split(".", 1)[1].replace(".", "/") for name in re.findall(r"-m (telegrad\.[\w.]+\w)", text)}
    programs = ("{}.py", "{}/__main__.py")
    assert {name for name in modules if not any((ROOT / form.format(name)).exists() for form in programs)} == set()
    targets = set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE))
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_page_lists_each_example():
    rows = re.findall(
        r"^\| \[`(\w+)`\]\(\.\./examples/(\w+)\.py\) \|", (ROOT / "docs" / "examples.md").read_text(), re.MULTILINE
    )
    assert all(name == file for name, file in rows)
    programs = {path.stem for path in (ROOT / "examples").glob("*.py") if "__main__" in path.read_text()}
    assert {name for name, _ in rows} == programs - {"make_digits"}
