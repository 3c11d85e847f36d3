"""Title of a process."""

import sys
from pathlib import Path

import pytest
from telegrad.base import process_title
from telegrad.base.process_title import title_worker

SHOW = """
import sys
from telegrad.base.process_title import set_title
sys.argv  # which the interpreter has read before
set_title("title" * 1000, "a" * 20 + "end")
command = open("/proc/self/cmdline").read()
environment = open("/proc/self/environ").read()
print(len(set(command)), command[:10], open("/proc/self/comm").read().strip(), sys.argv[1:], "PATH=" in environment)
"""


@pytest.mark.processes
def test_a_title_is_cut_to_its_place_and_harms_neither_arguments_nor_environment(run_python):
    assert run_python("-c", SHOW, "x", "y") == f"5 titletitle {'a' * 12}end ['x', 'y'] True\n"


@pytest.mark.parametrize(
    ("arguments", "program"),
    [(["/a/train.py", "x"], "train.py"), (["-m", "pkg.train"], "pkg.train"), (["-c"], "a program"), ([], "a program")],
)
def test_the_title_of_a_worker_names_it_and_its_program(arguments, program, monkeypatch):
    titles = []
    monkeypatch.setattr(process_title, "set_title", lambda *title: titles.append(title))
    monkeypatch.setattr(sys, "argv", arguments)
    title_worker("trainer1")
    assert titles == [(f"telegrad trainer1 of {program}", "trainer1")]


def test_a_system_that_hides_the_place_changes_nothing(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda _: "1 (python) S 1 1")
    monkeypatch.setattr(Path, "write_bytes", lambda *_: None)
    process_title.set_title("title", "short")
