"""Packages and data files of the wheel are those of the tree."""

import ast
import re
import subprocess
from importlib.metadata import entry_points, requires, version
from pathlib import Path

import telegrad

ROOT = Path(__file__).resolve().parents[2]
NOT_SHIPPED = {"tests", "tools", "benchmarks", "docs", "build", "dist"}
DOCUMENTS = {".md", ".py", ".pyc"}  # code is shipped in any case, documents need not be


def value(name):
    """A literal of pyproject.toml: Python 3.10 has no reader for it, and this needs no more than one."""
    found = re.search(rf"^{re.escape(name)} = (\[.*?\]|\".*?\")$", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    assert found, f"pyproject.toml has no {name}"
    return ast.literal_eval(found[1])


def packages():
    """Every folder with an `__init__.py`, by its dotted name."""
    shipped = [
        path for path in ROOT.iterdir() if path.is_dir() and path.name not in NOT_SHIPPED and path.name[0] != "."
    ]
    interfaces = [path for folder in shipped for path in folder.rglob("__init__.py")]
    ours = [(), *(path.relative_to(ROOT).parts[:-1] for path in interfaces)]
    return sorted(".".join(("telegrad", *parts)) for parts in ours)


def test_every_package_is_shipped(run_python):
    listing = "import setuptools; setuptools.setup = lambda packages, cmdclass: print(*packages); exec(open('setup.py').read())"
    assert sorted(run_python("-c", listing, cwd=ROOT).split()) == packages()


def test_every_dependency_is_used():
    modules = {"grpcio": "grpc", "protobuf": "google"}
    folders = {ROOT.joinpath(*package.split(".")[1:]) for package in packages()}
    texts = (path.read_text() for folder in folders for path in folder.glob("*.py"))
    imports = {name for text in texts for name in re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)}
    for dependency in value("dependencies"):
        name = re.match(r"[\w-]+", dependency)[0]
        assert modules.get(name, name) in imports, f"nothing imports {name}"


def test_data_files_are_declared():
    declared = {}
    for package in packages():
        if f'"{package}" = [' in (ROOT / "pyproject.toml").read_text():
            declared[package] = value(f'"{package}"')
    folders = {package: ROOT.joinpath(*package.split(".")[1:]) for package in packages()}
    shipped = {path for package, patterns in declared.items() for p in patterns for path in folders[package].glob(p)}
    assert ROOT / "py.typed" in shipped, "without it nobody's type checker sees our types"
    held = {
        path
        for package, folder in folders.items()
        if package != "telegrad"
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in DOCUMENTS and "__pycache__" not in path.parts
    }
    assert held <= shipped, f"not declared in package-data: {held - shipped}"


def test_the_repository_holds_no_large_file():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sizes = {name: path.stat().st_size for name in listed.split("\0") if name and (path := ROOT / name).is_file()}
    assert sizes, "git lists no file"
    assert not {name: size for name, size in sizes.items() if size > 2**19}, "wheels, archives, recordings?"


def test_what_is_installed_is_what_is_here():
    assert version("telegrad") == telegrad.__version__
    assert Path(telegrad.__file__).parent == ROOT
    (command,) = entry_points(group="console_scripts", name="telegrad")
    assert callable(command.load())
    installed = {
        requirement.split(";")[0].strip() for requirement in requires("telegrad") or () if ";" not in requirement
    }
    assert {re.match(r"[\w-]+", r)[0] for r in installed} == {re.match(r"[\w-]+", r)[0] for r in value("dependencies")}
