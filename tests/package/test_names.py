"""Names: in the packages of workers a class name, a constant and a verb mean one thing; comments name thread or message."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["rpc", "rref", "autograd_dist", "collective", "launcher", "agents", "pipelining", "profiler_dist"]
RIDDLES = re.compile(r"\b(somebody|nobody|in vain)\b|# [^\n]*\bwho\b", re.IGNORECASE)
MOST_RIDDLES = 5  # in texts of people, mostly: "both ends prove who they are"


def modules(packages):
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [(str(path.relative_to(ROOT)), path.read_text()) for path in paths if not path.name.endswith("_pb2.py")]


def places(sources):
    """Return the files that define each public class."""
    found = defaultdict(list)
    for file, text in sources:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(file)
    return found


def test_a_class_name_stands_once():
    assert {name: files for name, files in places(modules(PACKAGES)).items() if len(files) > 1} == {}


def test_two_classes_of_one_name_are_found():
    assert places([("a.py", "class Event: pass"), ("b.py", "def f():\n    class Event: pass")])["Event"] == [
        "a.py",
        "b.py",
    ]


def test_comments_name_the_thread_the_message_or_the_worker():
    lines = [(file, line) for file, text in modules(PACKAGES[:3]) for line in text.split("\n")]
    found = [f"{file}: {line.strip()}" for file, line in lines if RIDDLES.search(line)]
    assert len(found) <= MOST_RIDDLES, "\n".join(found)


def constants(sources):
    """Return the values, as their code, of each constant."""
    found = defaultdict(set)
    for _, text in sources:
        for node in ast.parse(text).body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in [target.id for target in targets if isinstance(target, ast.Name)]:
                    if re.fullmatch(r"[A-Z][A-Z0-9_]+", name):
                        found[name].add(ast.unparse(node.value))
    return found


def test_the_name_of_a_constant_stands_for_one_value():
    assert {name: values for name, values in constants(modules(PACKAGES)).items() if len(values) > 1} == {}


def test_two_values_of_one_name_are_found():
    assert constants([("a.py", "WAIT_SECONDS = 1.0"), ("b.py", "WAIT_SECONDS: float = 2.0")]) == {
        "WAIT_SECONDS": {"1.0", "2.0"}
    }


def functions(sources):
    """Return (file, function) of each function and method."""
    trees = [(file, ast.parse(text)) for file, text in sources]
    nodes = [(file, node) for file, tree in trees for node in ast.walk(tree)]
    return [(file, node) for file, node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def misused_verbs(sources):
    """Return the functions whose parameters and results contradict the verbs of ``docs/glossary.md``."""
    return [f"{file}: {each.name}" for file, each in functions(sources) if not fits_its_verb(each)]


def fits_its_verb(function):
    name, result = function.name.lstrip("_"), ast.unparse(function.returns) if function.returns else ""
    if name == "take" or (name.startswith("take_") and name != "take_back"):
        return result not in ("None", "bool", "")
    if function.name == "close":
        return result in ("None", "list[str]")  # names of threads that still run
    if function.name == "send":
        return len(function.args.posonlyargs + function.args.args) > 1
    return True


def test_a_verb_means_one_thing():
    assert misused_verbs(modules([package for package in PACKAGES if package != "launcher"])) == []


def test_a_verb_that_means_something_else_is_found():
    source = "def take(self, entry) -> None: ...\ndef take(self) -> int: ...\ndef send(self) -> list[int]: ..."
    assert misused_verbs([("a.py", source)]) == ["a.py: take", "a.py: send"]
