"""Folders import only from floors below their own: what core and the profiler know, rpc need not tell them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = {
    "core": 0, "proto": 0, "rpc": 1, "nn": 1, "optim": 1, "data": 1, "distributions": 1, "rref": 2, "autograd_dist": 3,
    "launcher": 4, "examples": 4, "benchmarks": 4, "testing": 4,
}  # fmt: skip
# Upwards, for users who look there: what answers references and gradients comes with rpc.
UPWARDS = {("rpc", "rref"), ("rref", "autograd_dist")}
# Rooms of one floor that stand on one another.
BESIDE = {
    ("optim", "nn"), ("distributions", "nn"), ("launcher", "examples"), ("examples", "launcher"), ("benchmarks", "launcher"),
    ("testing", "launcher"),
}  # fmt: skip


def imports(path):
    """The rooms of the package that a module imports from, whenever it does."""
    parts = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = parts[: len(parts) - node.level + 1]
            names = (*base, *(node.module or "").split(".")) if node.module else base
            yield from [names[0]] if names else [alias.name for alias in node.names]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (name.split(".")[1] for name in modules if name and name.startswith("telegrad."))


def modules(room):
    return sorted(ROOT.joinpath(room).rglob("*.py"))


def test_every_room_has_a_floor():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms - {"tests", "docs", "build"} == set(FLOORS)


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_from_below(room):
    found = {
        (str(path.relative_to(ROOT)), other)
        for path in modules(room)
        for other in imports(path)
        if other in FLOORS and other != room and FLOORS[other] >= FLOORS[room] and (room, other) not in BESIDE
    }
    upwards = {(path, other) for path, other in found if (room, other) in UPWARDS and path == f"{room}/__init__.py"}
    assert found - upwards == set()


def test_who_knows_the_schema():
    """Those who send; not what users of references and futures see."""
    known = {path.relative_to(ROOT) for room in FLOORS for path in modules(room) if "proto" in set(imports(path))}
    assert {path.parts[0] for path in known} <= {"rpc", "rref", "autograd_dist", "proto", "testing"}
    assert not known & {Path("rref", name) for name in ("__init__.py", "rref.py", "serving.py", "proxy.py")}


def test_references_know_nothing_of_lanes_and_frames():
    for path in modules("rref"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rpc":
                assert node.module == "rpc.extend", f"{path} imports from {node.module}"
