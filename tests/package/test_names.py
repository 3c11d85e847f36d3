"""Names: a class name and a constant stand once among the packages of workers; comments name the thread or the message."""

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
