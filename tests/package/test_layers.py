"""The house's rules: a room imports only from floors below it, and from another room only what its face shows.

The floors are DESIGN's table. Every import counts, also inside functions and under TYPE_CHECKING.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "telegrad"

FLOORS = {
    "launcher": 4,
    "examples": 4,
    "autograd_dist": 3,
    "rref": 2,
    "collective": 2,
    "rpc": 1,
    "nn": 1,
    "distributions": 1,
    "optim": 1,
    "data": 1,
    "core": 0,
    "proto": 0,
}
BESIDE = {"testing", "benchmarks"}  # may import from every floor, and no floor from them
NOT_ROOMS = {"tests", "docs", "build", "dist"}

USERS = {"examples", "benchmarks"}  # programs like a user's: they may import the package itself, by its name

USERS_OF_ALL_NAMES = "testing/parity/"  # looks up every public name beside PyTorch's

PUBLIC_MODULES = {
    "core.errors",
    "core.fft",
    "core.futures",
    "core.job_secrets",
    "core.linalg",
    "core.profiler",
    "core.extend",
    "core.segments",
    "core.sparse",
    "core.worker_reports",
    "rpc.extend",
    "proto.telegrad_pb2",
}
"""Shown beside the faces: to those who extend the library; generated code."""

EXCEPTIONS = {
    ("rpc/__init__.py", "rref", "RRef"),
    ("rpc/__init__.py", "rref", "remote"),
    ("rpc/__init__.py", "rref", None),
    ("rref/__init__.py", "autograd_dist", None),
}
"""(file, room, name): `rpc` hands on what its users look for there; faces bring the parts of an agent from above."""


class House:
    """The modules of a package whose root folder this is; the paths are relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rooms = sorted(path.parent.name for path in root.glob("*/__init__.py") if _is_room(path.parent.name))

    def files(self):
        yield from sorted(self.root.glob("*.py"))
        for room in self.rooms:
            yield from sorted((self.root / room).rglob("*.py"))

    def imports(self, path):
        """The imports of the package's own things in a file: (target as parts below the root, name or None, line)."""
        here = path.relative_to(self.root).parts[:-1]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == PACKAGE:
                        yield tuple(alias.name.split(".")[1:]), None, node.lineno
            elif isinstance(node, ast.ImportFrom):
                target = self._target(node, here)
                if target is not None:
                    for alias in node.names:
                        yield *self._room_first(target, alias.name), node.lineno

    @staticmethod
    def _target(node, here):
        module = tuple(node.module.split(".")) if node.module else ()
        if node.level:
            return here[: len(here) - node.level + 1] + module
        return module[1:] if module and module[0] == PACKAGE else None

    def _room_first(self, target, name):
        """`from .. import rpc` imports a room, and not a name of the root's."""
        return ((name,), None) if not target and name in self.rooms else (target, name)

    def violations(self):
        for path in self.files():
            relative = path.relative_to(self.root)
            room = relative.parts[0] if len(relative.parts) > 1 else None
            if room is None:
                continue  # the root stands above all rooms and gathers what they have
            for target, name, line in self.imports(path):
                why = self._violation(relative.as_posix(), room, target, name)
                if why:
                    yield f"{relative.as_posix()}:{line}: {why}"

    def _violation(self, file, room, target, name):
        if not target or target[0] not in self.rooms:
            if room in USERS or file.startswith(USERS_OF_ALL_NAMES):
                return None
            return f"{room}/ imports from the package's root, which stands above it"
        other = target[0]
        if other == room or (file, other, name) in EXCEPTIONS:
            return None
        if room not in BESIDE and not (other in FLOORS and FLOORS[other] < FLOORS[room]):
            return f"{room}/ imports from {other}/, which is not on a floor below"
        if room == "testing":
            return None  # test tools drive the state machines themselves
        return self._privacy(other, target, name)

    def _privacy(self, other, target, name):
        module = ".".join(target)
        if name is not None and self._is_module(target, name) and name not in self._face(target):
            module = f"{module}.{name}"
        if module == other or module in PUBLIC_MODULES:
            return None
        return f"{module} is private to {other}/: import from its face, {other}/__init__.py"

    def _is_module(self, target, name):
        folder = self.root.joinpath(*target)
        return (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()

    def _face(self, target):
        """The names that a folder's `__init__.py` binds by importing them."""
        tree = ast.parse(self.root.joinpath(*target, "__init__.py").read_text())
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return {alias.asname or alias.name for node in imports for alias in node.names}


def _is_room(name: str) -> bool:
    return name not in NOT_ROOMS and not name.startswith(".")


def test_every_room_has_its_place():
    rooms = set(House(ROOT).rooms)
    assert rooms >= {"core", "rpc", "launcher"}, "found the house"
    assert rooms <= FLOORS.keys() | BESIDE, "a new room needs a floor in DESIGN's table and here"


def test_rooms_import_from_the_faces_of_floors_below():
    violations = list(dict.fromkeys(House(ROOT).violations()))
    assert not violations, "\n" + "\n".join(violations)


# The rules themselves, on a house made for them.


@pytest.fixture
def house(tmp_path):
    """Builds a house with some rooms, then writes the file and returns what is wrong."""

    def check(file, source):
        for room in (*FLOORS, *BESIDE, "core/autograd"):
            (tmp_path / room).mkdir(exist_ok=True)
            (tmp_path / room / "__init__.py").write_text("")
        (tmp_path / "core" / "__init__.py").write_text("from . import futures\nfrom .errors import TelegradError\n")
        for module in ("errors", "futures", "extend"):
            (tmp_path / "core" / f"{module}.py").write_text("")
        (tmp_path / "__init__.py").write_text("from .core.errors import TelegradError\nfrom . import rpc\n")
        (tmp_path / file).write_text(source)
        return list(House(tmp_path).violations())

    return check


@pytest.mark.parametrize(
    "file, source",
    [
        ("rpc/agent.py", "import os\nfrom ..core import Future, TelegradError\nfrom ..proto import telegrad_pb2"),
        ("rpc/agent.py", "from . import lanes\nfrom .lanes import base\nfrom .. import core"),
        ("rpc/agent.py", "from ..core.extend import Tensor\nfrom ..core import errors, extend, futures"),
        ("core/autograd/engine.py", "from ..errors import TelegradError\nfrom .. import futures\nfrom . import node"),
        ("rpc/__init__.py", "from ..rref import RRef, remote"),
        ("rref/context.py", "from ..rpc.extend import Handler"),
        ("autograd_dist/context.py", "from ..rref import RRef\nfrom ..optim import SGD"),
        ("examples/demo.py", "import telegrad as tg"),
        ("examples/demo.py", "import telegrad.rpc\nfrom telegrad import nn, tensor"),
        ("benchmarks/rpc.py", "import telegrad as tg\nfrom telegrad import launcher"),
        ("testing/clock.py", "from ..launcher import spawn"),
    ],
)
def test_what_the_rules_allow(house, file, source):
    assert house(file, source) == []


@pytest.mark.parametrize(
    "file, source, why",
    [
        ("core/x.py", "from ..rpc import Agent", "core/ imports from rpc/, which is not on a floor below"),
        ("core/x.py", "def f():\n    from ..proto import y", "core/ imports from proto/"),
        ("core/autograd/x.py", "from ...nn import Linear", "core/ imports from nn/"),
        ("rpc/agent.py", "from ..nn import Linear", "rpc/ imports from nn/"),
        ("rpc/agent.py", "from ..rref import RRef", "rpc/ imports from rref/"),
        ("rpc/__init__.py", "from ..rref import OwnerRRef", "rpc/ imports from rref/"),
        ("rpc/agent.py", "from .. import rref", "rpc/ imports from rref/"),
        ("rpc/agent.py", "import telegrad.rref", "rpc/ imports from rref/"),
        ("rpc/agent.py", "from ..testing import clock", "rpc/ imports from testing/"),
        ("launcher/cli.py", "from ..examples import demo", "launcher/ imports from examples/"),
        ("rpc/agent.py", "from .. import __version__", "rpc/ imports from the package's root"),
        ("rpc/agent.py", "import telegrad", "rpc/ imports from the package's root"),
        ("rpc/agent.py", "from ..core.tensor import Tensor", "core.tensor is private to core/"),
        ("rpc/agent.py", "from ..core.autograd import node", "core.autograd is private to core/"),
        ("examples/demo.py", "from telegrad.core.printing import describe", "core.printing is private to core/"),
        ("examples/demo.py", "import telegrad.core.printing", "core.printing is private to core/"),
    ],
)
def test_what_the_rules_forbid(house, file, source, why):
    (violation,) = house(file, source)
    assert violation.startswith(f"{file}:") and why in violation
