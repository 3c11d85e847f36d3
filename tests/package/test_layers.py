"""Rules of the architecture: a package imports only from layers below, only the interface, and modules form no cycles.

Every import counts, also inside functions and under TYPE_CHECKING, and so does a place that is given to ``late_imports``.
"""

import ast
import re
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "telegrad"

LAYERS = {
    "base": 0,
    "core": 1,
    "proto": 1,
    "amp": 2,
    "rpc": 2,
    "nn": 2,
    "optim": 2,
    "data": 2,
    "distributions": 2,
    "func": 3,
    "rref": 3,
    "capture": 3,
    "collective": 3,
    "profiler_dist": 3,
    "autograd_dist": 4,
    "checkpoint": 4,
    "pipelining": 4,
    "agents": 5,
    "interop": 5,
    "launcher": 6,
    "examples": 6,
    "testing": 7,
    "benchmarks": 8,
    "compat": 7,
    "tools": 8,
}
PLACE = re.compile(r"""["'](\.+)([a-z_]+)[a-z_.]*["']""")  # of a module, relative to a package
LAYERS_OF_RPC = {
    "call_states": 0,
    "certificates": 0,
    "running": 0,
    "state": 0,
    "security": 1,
    "device_maps": 1,
    "options": 2,
    "threads": 2,
    "lanes": 3,
    "wire": 4,
    "flow": 5,
    "links": 6,
    "calls": 7,
    "losses": 7,
    "rendezvous": 7,
    "receiver": 8,
    "agent": 9,
    "current": 10,
    "functions": 11,
    "meshes": 12,
    "group": 13,
    "observing": 14,
    "retries": 14,
    "buffers": 15,
    "exactly_once": 15,
    "debugging": 15,
    "api": 16,
    "backend_registry": 16,
    "exporting": 17,
    "extend": 17,
    "__init__": 18,
}
"""Packages and modules in rpc/. Each imports from those below it."""

FLOORS_OF_RPC = 9
"""Longest chain of modules in rpc/ each of which loads the next one: so far a newcomer follows names through files."""
INTERFACES_OF_RPC = {"rpc.extend"}  # beside the packages' ``__init__``: they have no code

NOT_PACKAGES = {"tests", "docs", "build", "dist"}

USERS = {"examples", "benchmarks", "compat"}  # programs like a user's: they may import the package itself, by its name
USERS_OF_ALL_NAMES = "tools/parity/"  # looks up every public name beside PyTorch's

PUBLIC_MODULES = {
    "examples.captured_steps",
    "core.fft",
    "core.futures",
    "core.last_trace",
    "core.linalg",
    "core.profiler",
    "core.recording",
    "core.serialization",
    "core.spill_file",
    "core.extend",
    "nn.extend",
    "optim.extend",
    "core.shared_memory",
    "core.sparse",
    "rpc.certificates",
    "rpc.exporting",
    "rpc.extend",
    "rpc.observing",
    "collective.extend",
    "collective.optim",
    "collective.parallel",
    "rref.extend",
    "autograd_dist.extend",
    "capture.extend",
    "profiler_dist.extend",
    "testing.leaks",
    "testing.simulator",
}
"""Interfaces beside those of the packages, and all of base/: for those who extend the library."""

UPWARD = {
    ("rpc/__init__.py", "rref", "RRef"): "PyTorch's users look for it there",
    ("rpc/__init__.py", "rref", "remote"): "the same",
    ("rpc/__init__.py", "rref", "value"): "it stands beside remote",
    ("rpc/__init__.py", "profiler_dist", "_server_process_global_profile"): "the same",
    ("rpc/__init__.py", "agents", "init_rpc"): "the same; an agent consists of parts of all layers",
    ("rpc/__init__.py", "agents", "init_rpc_async"): "the same",
    ("collective/__init__.py", "agents", "init_process_group"): "the same; it may start an agent",
    ("nn/__init__.py", "collective", "parallel"): "the same",
    ("launcher/__init__.py", "compat", "migrate_file"): "the command line has the commands of all packages",
}
"""Names of a layer above that the package's root adds, as (file, package, name), and why; only type checkers import them."""

CYCLES = {
    "nn.hooked nn.hooks nn.module nn.registry nn.state": "a module consists of the others, whose annotations name it",
    "collective.parallel collective.parallel.data_parallel collective.parallel.distributed_data_parallel "
    "nn": "nn names it for type checkers",
    "rpc.meshes.mesh rpc.meshes.reference_mesh": "a mesh makes meshes of references, whose annotations name it",
    "testing.simulator.session testing.simulator.network": "the network carries the sessions' frames",
    "testing.simulator.blocking testing.simulator.buffers "
    "testing.simulator.calls testing.simulator.captured_steps testing.simulator.checks testing.simulator.faults "
    "testing.simulator.gatherings testing.simulator.gradients testing.simulator.journal testing.simulator.meshes "
    "testing.simulator.mixed testing.simulator.once testing.simulator.promises testing.simulator.reach "
    "testing.simulator.references testing.simulator.restarts testing.simulator.simulation testing.simulator.worker "
    "testing.simulator.workload": "a simulation has workers and faults, whose annotations name it",
}
"""Groups of modules that may import one another, and their reasons."""


class Source:
    """The modules of a package whose root folder this is; the paths are relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        names = (path.parent.name for path in root.glob("*/__init__.py"))
        self.packages = sorted(name for name in names if name not in NOT_PACKAGES and not name.startswith("."))

    def files(self):
        yield self.root / "__init__.py"
        for package in self.packages:
            yield from sorted((self.root / package).rglob("*.py"))

    @cached_property
    def files_imports(self):
        """The imports of each file, read once."""
        return {path: list(self.imports(path)) for path in self.files()}

    def imports(self, path, nodes=ast.walk):
        """The imports of the package's own things in a file: (target as parts below the root, name or None, line)."""
        here = path.relative_to(self.root).parts[:-1]
        for node in nodes(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == PACKAGE:
                        yield tuple(alias.name.split(".")[1:]), None, node.lineno
            elif isinstance(node, ast.ImportFrom):
                target = self._target(node, here)
                if target is not None:
                    for alias in node.names:
                        yield *self._package_first(target, alias.name), node.lineno

    def late_imports(self, path):
        """Places in other packages that a file gives to `late_imports`, as those of `imports`."""
        here, text = path.relative_to(self.root).parts[:-1], path.read_text()
        for place in PLACE.finditer(text):
            if len(place[1]) == len(here) + 1 and place[2] in self.packages:
                yield (place[2],), None, text.count("\n", 0, place.start()) + 1

    @staticmethod
    def _target(node, here):
        module = tuple(node.module.split(".")) if node.module else ()
        if node.level:
            return here[: len(here) - node.level + 1] + module
        return module[1:] if module and module[0] == PACKAGE else None

    def _package_first(self, target, name):
        """`from .. import rpc` imports a package, and not a name of the root's."""
        return ((name,), None) if not target and name in self.packages else (target, name)

    def is_module(self, target, name):
        folder = self.root.joinpath(*target)
        return (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()

    # -- layers

    def violations(self):
        for path, imports in self.files_imports.items():
            file, package = path.relative_to(self.root).as_posix(), path.relative_to(self.root).parts[0]
            if package not in self.packages:
                continue  # the root stands above all packages and gathers what they have
            for target, name, line in [*imports, *self.late_imports(path)]:
                if why := self._violation(file, package, target, name):
                    yield f"{file}:{line}: {why}"

    def _violation(self, file, package, target, name):
        if not target or target[0] not in self.packages:
            if package in USERS or file.startswith(USERS_OF_ALL_NAMES):
                return None
            return f"{package}/ imports from the package's root, which stands above it"
        other = target[0]
        if other == package or (file, other, name) in UPWARD:
            return None
        if not LAYERS[other] < LAYERS[package]:
            return f"{package}/ imports from {other}/, which is not on a layer below"
        if package in ("testing", "tools"):
            return None  # they drive the state machines themselves
        if other == "proto":
            return None if f"{package}_pb2" in (*target, name) else f"{package}/ uses another layer's messages"
        return self._privacy(other, target, name)

    def _privacy(self, other, target, name):
        module = ".".join(target)
        if name is not None and self.is_module(target, name) and name not in self._interface(target):
            module = f"{module}.{name}"
        if other == "base" or module == other or module in PUBLIC_MODULES:
            return None
        return f"{module} is private to {other}/: import from its interface, {other}/__init__.py"

    def _interface(self, target):
        """The names that a folder's `__init__.py` binds by importing them."""
        tree = ast.parse(self.root.joinpath(*target, "__init__.py").read_text())
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return {alias.asname or alias.name for node in imports for alias in node.names}

    # -- cycles

    def graph(self):
        """Every module and those that it names in imports; importing `a.b` does not count as an import of `a`."""
        return {self._module(path): set(self._named(path)) - {self._module(path)} for path in self.files_imports}

    def _module(self, path):
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _named(self, path):
        return self._names(self.files_imports[path])

    def _names(self, imports):
        for target, name, _ in imports:
            if name is not None and self.is_module(target, name):
                target = (*target, name)
            yield ".".join(target)

    # -- floors

    def longest_chain(self, folder, interfaces):
        """The longest chain of modules of a folder each of which loads the next one, without interfaces."""
        files = (self.root / folder).rglob("*.py")
        loads = {self._module(path): set(self._names(self.imports(path, loading))) for path in files}
        interfaces |= {self._module(path) for path in (self.root / folder).rglob("__init__.py")}

        @cache
        def chain(module):
            below = [chain(other) for other in sorted(loads[module] & loads.keys() - {module})]
            return [module] * (module not in interfaces) + max(below, key=len, default=[])

        return max(map(chain, loads), key=len)

    def cycles(self):
        """Groups of modules that reach one another through imports (Tarjan's strongly connected components)."""
        graph, index, low, stack, found = self.graph(), {}, {}, [], []

        def visit(module):
            index[module] = low[module] = len(index)
            stack.append(module)
            for other in graph[module]:
                if other not in index and other in graph:
                    visit(other)
                if other in stack:
                    low[module] = min(low[module], low[other])
            if low[module] == index[module]:
                group = [stack.pop()]
                while group[-1] != module:
                    group.append(stack.pop())
                found.append(tuple(sorted(group)))

        for module in graph:
            if module not in index:
                visit(module)
        return [group for group in found if len(group) > 1]


def loading(tree):
    """The statements of a module that run when it is loaded, without those for type checkers."""
    for node in tree.body:
        if isinstance(node, ast.If):
            yield from () if ast.unparse(node.test) == "TYPE_CHECKING" else loading(node)
            yield from loading(ast.Module(node.orelse))
        elif isinstance(node, ast.Try):
            yield from loading(node)
        else:
            yield node


OURS = Source(ROOT)


def test_every_package_has_a_layer():
    packages = set(OURS.packages)
    assert packages == LAYERS.keys(), "a new package needs a layer, in CONTRIBUTING's table and here"


def test_the_table_for_readers_has_these_layers():
    rows = re.findall(r"^\| (\d) \| ((?:`\w+/`(?:, )?)+) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert {name: int(layer) for layer, names in rows for name in re.findall(r"`(\w+)/`", names)} == LAYERS


def test_packages_import_from_the_interfaces_of_layers_below():
    violations = list(dict.fromkeys(OURS.violations()))
    assert not violations, "\n" + "\n".join(violations)


def test_parts_of_rpc_import_from_parts_below():
    for path in sorted((ROOT / "rpc").rglob("*.py")):
        part = path.relative_to(ROOT / "rpc").with_suffix("").parts[0]
        for target, name, line in OURS.imports(path):
            if target[:1] == ("rpc",) and (below := target[1] if len(target) > 1 else name) not in (part, None):
                where = f"{path.relative_to(ROOT)}:{line}: {part} imports {below}"
                assert LAYERS_OF_RPC[below] < LAYERS_OF_RPC[part], where


def test_loading_a_part_of_rpc_goes_through_few_floors():
    chain = OURS.longest_chain("rpc", INTERFACES_OF_RPC)
    assert len(chain) <= FLOORS_OF_RPC, " -> ".join(chain)


def test_every_part_of_rpc_has_a_layer_and_every_package_a_page():
    packages = {path.parent.name for path in (ROOT / "rpc").glob("*/__init__.py")}
    assert packages | {path.stem for path in (ROOT / "rpc").glob("*.py")} == LAYERS_OF_RPC.keys()
    for package in packages:
        page = (ROOT / "rpc" / package / "README.md").read_text()
        modules = {path.stem for path in (ROOT / "rpc" / package).glob("*.py")} - {"__init__"}
        patterns = re.findall(r"`([a-z_*]+)\.py`", page)
        missing = {each for each in modules if not any(fnmatch(each, pattern) for pattern in patterns)}
        assert not missing, f"rpc/{package}/README.md does not name {missing}"


def test_names_of_a_layer_above_are_imported_by_type_checkers_only():
    for file, package, name in UPWARD:
        body = ast.parse((ROOT / file).read_text()).body
        (block,) = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        rest = ast.unparse([node for node in body if node is not block] + block.orelse)
        assert f"from ..{package}" in ast.unparse(block.body) and name in ast.unparse(block.body)
        assert not re.search(rf"\.\.{package}\b", rest), f"{file} imports {package} also for others"


def test_modules_form_no_cycles():
    listed = [set(group.split()) for group in CYCLES]
    cycles = [group for group in OURS.cycles() if not any(set(group) <= each for each in listed)]
    assert not cycles, "these modules import one another"


# The rules themselves, on a package made for them.


@pytest.fixture
def source(tmp_path):
    """Builds a package with all layers, then writes the files and returns it."""

    def write(files):
        for package in (*LAYERS, "core/autograd"):
            (tmp_path / package).mkdir(exist_ok=True)
            (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / "core" / "__init__.py").write_text("from . import futures\nfrom .errors import TelegradError\n")
        for module in ("core/errors", "core/futures", "core/extend", "proto/rpc_pb2", "proto/rref_pb2"):
            (tmp_path / f"{module}.py").write_text("")
        (tmp_path / "__init__.py").write_text("from .core.errors import TelegradError\nfrom . import rpc\n")
        for file, text in files.items():
            (tmp_path / file).write_text(text)
        return Source(tmp_path)

    return write


@pytest.mark.parametrize(
    "file, text",
    [
        ("rpc/agent.py", "import os\nfrom ..core import Future, TelegradError\nfrom ..proto import rpc_pb2"),
        ("rpc/agent.py", "from . import lanes\nfrom .lanes import lane\nfrom .. import core"),
        ("rpc/agent.py", "from ..core.extend import Tensor\nfrom ..core import extend, futures"),
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
def test_what_the_rules_allow(source, file, text):
    assert list(source({file: text}).violations()) == []


@pytest.mark.parametrize(
    "file, text, why",
    [
        ("core/x.py", "from ..rpc import Agent", "core/ imports from rpc/, which is not on a layer below"),
        ("core/x.py", "def f():\n    from ..proto import y", "core/ imports from proto/"),
        ("core/autograd/x.py", "from ...nn import Linear", "core/ imports from nn/"),
        ("rpc/agent.py", "from ..nn import Linear", "rpc/ imports from nn/"),
        ("rpc/__init__.py", "late_imports(__name__, {'RRef': '..rref.handles'})", "rpc/ imports from rref/"),
        ("rpc/agent.py", "from ..rref import RRef", "rpc/ imports from rref/"),
        ("rpc/__init__.py", "from ..rref import OwnerRRef", "rpc/ imports from rref/"),
        ("rpc/agent.py", "from .. import rref", "rpc/ imports from rref/"),
        ("rpc/agent.py", "import telegrad.rref", "rpc/ imports from rref/"),
        ("rpc/agent.py", "from ..testing import clock", "rpc/ imports from testing/"),
        ("rref/__init__.py", "from .. import autograd_dist", "rref/ imports from autograd_dist/"),
        ("rref/context.py", "from ..rpc.agent import Agent", "rpc.agent is private to rpc/"),
        ("rref/context.py", "from ..proto import rpc_pb2", "rref/ uses another layer's messages"),
        ("launcher/cli.py", "from ..examples import demo", "launcher/ imports from examples/"),
        ("rpc/agent.py", "from .. import __version__", "rpc/ imports from the package's root"),
        ("rpc/agent.py", "import telegrad", "rpc/ imports from the package's root"),
        ("rpc/agent.py", "from ..core.tensors import Tensor", "core.tensors is private to core/"),
        ("rpc/agent.py", "from ..core.autograd import node", "core.autograd is private to core/"),
        ("examples/demo.py", "from telegrad.core.tensors import describe", "core.tensors is private to core/"),
        ("examples/demo.py", "import telegrad.core.tensors", "core.tensors is private to core/"),
    ],
)
def test_what_the_rules_forbid(source, file, text, why):
    (violation,) = source({file: text}).violations()
    assert violation.startswith(f"{file}:") and why in violation


@pytest.mark.parametrize("back", ["from . import a", "from .a import f", "def g():\n    from ..rpc.a import f"])
def test_a_cycle_is_found(source, back):
    assert source({"rpc/a.py": "from . import b, c", "rpc/b.py": back, "rpc/c.py": ""}).cycles() == [("rpc.a", "rpc.b")]
