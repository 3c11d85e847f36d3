"""The API reference has each name of each public package once, and each page of the site stands in a table of contents."""

import importlib
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Packages without a page: parts, programs, other names of what has pages, and names for those who extend Telegrad.
NOT_PUBLIC = {
    "telegrad.base",
    "telegrad.agents",
    "telegrad.compat",
    "telegrad.core",
    "telegrad.examples",
    "telegrad.profiler_dist",
    "telegrad.proto",
}


@pytest.fixture(scope="module")
def reference():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield importlib.import_module("reference")
    finally:
        sys.path.remove(str(ROOT / "docs"))
        for name in ("reference", "reference_names", "reference_table"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def names(reference):
    return sys.modules["reference_names"]


@pytest.fixture(scope="module")
def documented(reference):
    """Number of entries of each path."""
    found = Counter()
    for text in dict(reference.pages()).values():
        package = re.search(r"^\.\. (?:py:module|currentmodule):: (\S+)$", text, re.MULTILINE)
        for name in re.findall(r"^\.\. (?:auto\w+|py:data|py:function):: (\w+)", text, re.MULTILINE):
            found[f"{package[1]}.{name}"] += 1
    return found


def is_module(package, name):
    return isinstance(getattr(package, name), ModuleType)


def test_each_name_of_each_package_is_documented_once(reference, names, documented):
    missing = []
    for package in reference.PACKAGES:
        if package == "telegrad.interop.jax":
            continue  # JAX need not be here
        module = importlib.import_module(package)
        internal = names.INTERNAL.get(package, "").split()
        users = [name for name in getattr(module, "__all__", ()) if name not in internal]
        paths = {name: f"{package}.{name}" for name in users if f"{package}.{name}" not in reference.PACKAGES}
        missing += [path for name, path in paths.items() if path not in documented and not is_module(module, name)]
    assert missing == [], "a group of docs/reference_table.py must not hide them"
    assert [path for path, times in documented.items() if times > 1 and path != "telegrad.signal.windows"] == []
    assert len(documented) > 1400


def test_an_object_has_one_entry(names):
    found = names.documented()
    first = names.homes(found)
    entries = [entry for each in found.values() for entry in each if callable(entry.value)]
    assert {id(entry.value) for entry in entries} <= set(first)
    assert first[id(importlib.import_module("telegrad").RRef)].path == "telegrad.rpc.RRef"


def test_each_package_of_users_has_a_page(reference):
    folders = {path.parent for path in ROOT.glob("*/__init__.py")} - {
        ROOT / name for name in ("tests", "tools", "benchmarks")
    }
    packages = {f"telegrad.{folder.name}" for folder in folders}
    assert packages - NOT_PUBLIC <= set(reference.PACKAGES)
    assert packages >= NOT_PUBLIC


def test_groups_and_internal_names_exist(reference, names):
    for package, groups in reference.GROUPS.items():
        known = {entry.name for entry in names.entries(package)}
        assert {name for group in groups.values() for name in group.split()} <= known
    for package, internal in names.INTERNAL.items():
        assert [name for name in internal.split() if not hasattr(importlib.import_module(package), name)] == []


def test_each_page_of_the_site_stands_in_a_table_of_contents():
    docs, listed = ROOT / "docs", {ROOT / "docs" / "index.md"}
    for page in docs.rglob("*.md"):
        for tree in re.findall(r"^:::\{toctree\}\n(.*?)^:::$", page.read_text(), re.MULTILINE | re.DOTALL):
            names = [line.rpartition("<")[2].rstrip(">") for line in tree.splitlines() if line[:1] not in ("", ":")]
            listed |= {page.parent / f"{name}.md" for name in names}
    assert sorted(set(docs.rglob("*.md")) - listed) == []
