"""Docstrings: every public function explains its parameters when it has three or more, and every example runs.

A package is added to ``DOCUMENTED`` when it passes.
"""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

DOCUMENTED = [
    "agents", "amp", "autograd_dist", "base", "checkpoint", "core", "data", "distributions", "func", "launcher", "nn", "optim",
    "rpc", "rref", "testing/ops",
]  # fmt: skip
COMMAND_LINE = (
    "launcher/checkpoints.py",
    "launcher/cli.py",
    "launcher/watching/commands.py",
)  # docstrings are help texts, options explain themselves
OPERATIONS = "core/ops"  # there, what is declared is public

FEW = 2  # parameters that the first line can explain


def files():
    paths = [path for folder in DOCUMENTED for path in sorted((ROOT / folder).rglob("*.py"))]
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    return [name for name in names if name not in COMMAND_LINE and not name.endswith("_pb2.py")]


def is_declared(node):
    names = {ast.unparse(decorator).partition("(")[0] for decorator in getattr(node, "decorator_list", [])}
    return not names.isdisjoint(["operation", "published"])


def public_functions(tree, only_declared=False):
    """(qualified name, function, docstring that may explain its parameters) of a module."""
    for node in tree.body:
        if only_declared and not is_declared(node):
            continue
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node, ast.get_docstring(node)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and (method.name == "__init__" or method.name[0] != "_"):
                    of = node if method.name == "__init__" else method
                    yield f"{node.name}.{method.name}", method, ast.get_docstring(of)


def parameters(function):
    given = function.args
    names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def explained(docstring):
    """The names in the sections ``Args:`` and ``Attributes:``."""
    sections = re.findall(r"^(?:Args|Attributes):\n((?:(?: {4}.*)?\n?)+)", docstring, re.MULTILINE)
    entries = re.findall(r"^ {4}([*\w][*\w, ]*):", "\n".join(sections), re.MULTILINE)
    return {name.strip(" *") for entry in entries for name in entry.split(",")}


def gaps(source, only_declared=False):
    """Return what is missing in a module, as lines of text."""
    for name, function, docstring in public_functions(ast.parse(source), only_declared):
        if any(getattr(decorator, "id", "") == "overload" for decorator in function.decorator_list):
            continue
        own = parameters(function)
        # An override is documented where it is declared.
        if docstring is not None and len(own) > FEW and (unknown := set(own) - explained(docstring)):
            yield f"{name}: Args: does not name {', '.join(sorted(unknown))}"
        elif docstring is None and "." not in name:
            yield f"{name}: has no docstring"


def test_public_functions_explain_their_parameters():
    texts = {name: (ROOT / name).read_text() for name in files()}
    found = [f"{name}: {gap}" for name, text in texts.items() for gap in gaps(text, name.startswith(OPERATIONS))]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("name", [name for name in files() if ">>>" in (ROOT / name).read_text()])
def test_examples_run(name):
    module = importlib.import_module("telegrad." + name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    failed, count = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert count and not failed


ARGUMENTS = '''
def f(a, b, c):
    """Return 1.

    Args:
        a, b: numbers.
        c: a tensor
            of shape (n,).

    Raises:
        ValueError: never.
    """
'''


def test_the_check_finds_gaps():
    assert not list(gaps(ARGUMENTS))
    assert list(gaps(ARGUMENTS.replace("a, b: n", "a: n"))) == ["f: Args: does not name b"]
    assert list(gaps("def f(a):\n    pass")) == ["f: has no docstring"]


RIDDLES = re.compile(
    r'^ *r?"""(?:What|Who|Whoever|Whether|How|That|Those|These|Where|When|Why|Which|There|It|They|This)\b.*',
    re.MULTILINE,
)


def test_docstrings_begin_with_a_noun_or_a_verb():
    folders = [each for each in ROOT.iterdir() if each.name[0] != "." and each.name not in ("build", "dist")]
    paths = [path for folder in sorted(folders) for path in sorted(folder.rglob("*.py"))]
    ours = {path: str(path.relative_to(ROOT)) for path in paths if not path.is_relative_to(ROOT / "tests" / "golden")}
    found = [f"{file}: {line.strip()}" for path, file in ours.items() for line in RIDDLES.findall(path.read_text())]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("first_line", ["Whether it is so.", "That which is so."])
def test_a_riddle_is_found(first_line):
    assert RIDDLES.search(f'def f():\n    """{first_line}"""') and RIDDLES.search(f'r"""{first_line}\n"""')
