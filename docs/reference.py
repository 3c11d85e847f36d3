"""Pages of the API reference: every name that a public package exports, once, under the path that users write.

``docs/conf.py`` writes them into ``docs/api`` before each build. The file in which a name is written is the heading under
which it stands, unless ``reference_table.py`` has a better one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reference_names import MISSING, ROOT, Entry, documented, homes
from reference_table import FAMILIES, GROUPS, PACKAGES, TORCH
from telegrad.compat.torch.places import PLACES
from telegrad.core.ops.table.registry import FUNCTIONS, METHODS

OTHERS = "Other names"
ONE_PAGE = 70  # names; a package with more has a page for each family
INDEX = """Every public name, once, under the path that programs write. In signatures ``Operand`` is a tensor, an array of
NumPy or a number, ``Scalar`` a number, ``Dims`` a dimension, several, or ``None`` for all, and ``npt.DTypeLike`` a dtype or its
name.

"""
COMPAT = """``import telegrad.compat.torch as torch`` has PyTorch's names under PyTorch's paths. A name that is also here is the
same object; :doc:`/migrating` lists what differs and what is not there. ``torch.NAME`` is ``telegrad.NAME``
(:doc:`telegrad`), and these modules are:

"""
UNDERLINES = {1: "=", 2: "-"}


def write(folder: Path) -> None:
    """Write all pages; one that is as it was is not touched, so that Sphinx need not read it again."""
    folder.mkdir(exist_ok=True)
    texts = dict(pages())
    for old in set(folder.glob("*.rst")) - {folder / name for name in texts}:
        old.unlink()
    for name, text in texts.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)


def pages() -> Iterator[tuple[str, str]]:
    """Return (file name, text) of each page."""
    found = documented()
    first = homes(found)
    yield "index.rst", _index(found)
    yield "compat.rst", _compat(found)
    for package, each in found.items():
        if len(each) <= ONE_PAGE:
            yield f"{package}.rst", _head(package) + _names(each) + _body(_sections(package, each, first))
            continue
        families: dict[str, list[Entry]] = {}
        for entry in each:
            families.setdefault(_family(package, entry, first), []).append(entry)
        names = {family: f"{package}-{family.lower().replace(' ', '-')}" for family in sorted(families)}
        yield f"{package}.rst", _head(package) + _toctree(names.values())
        for family, name in names.items():
            head = f"{_title(family)}.. currentmodule:: {package}\n\n"
            yield f"{name}.rst", head + _names(families[family]) + _body(_sections(package, families[family], first))


def _index(found: dict[str, list[Entry]]) -> str:
    rows = "".join(f"   * - :doc:`{package} <{package}>`\n     - {PACKAGES[package]}\n" for package in found)
    hidden = "".join(f"   {package}\n" for package in found)
    table = f".. list-table::\n   :widths: 35 65\n\n{rows}\n"
    return _title("API reference") + INDEX + table + f".. toctree::\n   :hidden:\n\n{hidden}   compat\n"


def _compat(found: dict[str, list[Entry]]) -> str:
    """Return the page of PyTorch's paths: for each package here, those that are its names."""
    theirs: dict[str, list[str]] = {}
    for path, place in {**PLACES, **TORCH}.items():
        ours = f"telegrad.{re.sub('^core[.]', '', place)}"
        if ours in found:
            theirs.setdefault(ours, []).append(f"``torch.{path}``")
    rows = "".join(
        f"   * - {', '.join(paths)}\n     - :doc:`{ours} <{ours}>`\n" for ours, paths in sorted(theirs.items())
    )
    return _title("telegrad.compat.torch") + COMPAT + f".. list-table::\n   :widths: 65 35\n\n{rows}\n"


def _head(package: str) -> str:
    return f"{_title(package)}.. py:module:: {package}\n\n{PACKAGES[package]}\n\n"


def _names(found: list[Entry]) -> str:
    """Return links to all names in the order of the alphabet, those of PyTorch's that begin with ``_`` last."""
    links = [
        f":py:obj:`{entry.name} <{entry.path}>`"
        for entry in sorted(found, key=lambda entry: (entry.name[0] == "_", entry.name.lower()))
    ]
    return f".. rst-class:: names\n\n{' '.join(links)}\n\n" if len(links) > 2 else ""


def _sections(package: str, found: list[Entry], first: dict[int, Entry]) -> dict[str, list[str]]:
    """Return the entries' texts by section: those of the table in their order, then one for each file."""
    titles = {name: title for title, names in GROUPS.get(package, {}).items() for name in names.split()}
    order = list(titles)
    sections: dict[str, list[str]] = {title: [] for title in titles.values()}
    others: list[str] = []
    for entry in sorted(found, key=lambda entry: order.index(entry.name) if entry.name in order else len(order)):
        documents = first.get(id(entry.value), entry)
        if documents is not entry:
            others.append(_synonym(entry, documents))
        else:
            sections.setdefault(titles.get(entry.name) or _words(entry.home), []).append(_text(entry))
    return {**sections, OTHERS: others}


def _body(sections: dict[str, list[str]]) -> str:
    """Return the text of sections, without a heading if there is only one."""
    filled = {title: texts for title, texts in sections.items() if texts}
    return "".join(("" if len(filled) == 1 else _title(title, 2)) + "".join(texts) for title, texts in filled.items())


def _words(home: Path) -> str:
    stem = home.parent.name if home.stem == "__init__" else home.stem
    return stem.strip("_").replace("_", " ").capitalize()


def _family(package: str, entry: Entry, first: dict[int, Entry]) -> str:
    """Return the title of the page on which an entry stands, in a package of many names."""
    if first.get(id(entry.value), entry) is not entry:
        return OTHERS
    folder = entry.home.relative_to(ROOT).parts
    key = folder[2] if folder[:2] == ("core", "ops") else entry.home.stem
    return next((title for title, keys in FAMILIES[package].items() if key in keys.split()), "General")


def _text(entry: Entry) -> str:
    if entry.path == "telegrad.Tensor":
        return _tensor()
    if isinstance(entry.value, type) and not entry.value.__module__.startswith("telegrad"):
        return f".. py:data:: {entry.name}\n\n   ``{entry.value.__module__}.{entry.value.__name__}``.\n\n"
    if isinstance(entry.value, type) and issubclass(entry.value, BaseException):
        return f".. autoexception:: {entry.name}\n\n"
    if isinstance(entry.value, type):
        return f".. autoclass:: {entry.name}\n   :members:\n\n"
    if isinstance(entry.value, SimpleNamespace):
        return "".join(_member(f"{entry.name}.{name}", value) for name, value in vars(entry.value).items())
    if callable(entry.value) or entry.value is MISSING:
        return f".. autofunction:: {entry.name}\n\n"
    return f".. py:data:: {entry.name}\n   :value: {entry.value!r}\n\n"


def _tensor() -> str:
    """Return the text of ``Tensor``: methods that are public functions as well are named, the others are documented."""
    places = {id(function): f"telegrad.{name}" for name, function in FUNCTIONS.items()}
    forms = {name: places[id(form.operation)] for name, form in METHODS.items() if id(form.operation) in places}
    named = ", ".join(f":py:obj:`{name} <{path}>`" for name, path in forms.items() if not name.startswith("__"))
    left_out = f"   :members:\n   :exclude-members: {', '.join(forms)}\n\n"
    intro = "Methods that are functions as well; a name with ``_`` at its end writes the result into the tensor:"
    return f".. autoclass:: Tensor\n{left_out}{intro} {named}.\n\n"


def _member(name: str, function: Any) -> str:
    lines = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", "\n   ").replace("|", r"\|")
    return f".. py:function:: {name}{inspect.signature(function)}\n\n   {lines}\n\n"


def _synonym(entry: Entry, documents: Entry) -> str:
    return f".. py:data:: {entry.name}\n\n   The same as :py:obj:`{documents.path}`.\n\n"


def _title(text: str, level: int = 1) -> str:
    return f"{text}\n{UNDERLINES[level] * len(text)}\n\n"


def _toctree(names: Any) -> str:
    return ".. toctree::\n\n" + "".join(f"   {name}\n" for name in names) + "\n"
