"""The benchmark measures, shows what failed, and leaves no process, whatever its contenders do."""

import json
import sys

import psutil
import pytest
from telegrad.benchmarks import report, rpc
from telegrad.benchmarks.cases import CASES, named
from telegrad.benchmarks.runner import Contender

READY = "import sys; print('{\"ready\": {}}', flush=True)\n"


def contender(source):
    return Contender("test", [sys.executable, "-c", source])


@pytest.mark.processes
def test_ours_alone(tmp_path, capsys):
    file = tmp_path / "figures.json"
    assert rpc.main(["--ours-only", "--rounds", "2", "--only", "no-op", "--json", str(file)]) == 0
    figures = json.loads(file.read_text())["contenders"]["telegrad"]
    assert len(figures["seconds"]["no-op"]) == 2 and not figures["errors"]
    assert "no-op" in capsys.readouterr().out


@pytest.mark.processes
def test_a_peer_that_cannot_start_is_shown(tmp_path, capsys):
    assert rpc.main(["--peer", "/bin/false", "--rounds", "1", "--only", "no-op"]) == 0
    output = capsys.readouterr().out
    assert "failed" in output and "ended by itself" in output


def test_answers_are_kept_by_case():
    source = READY + "for line in sys.stdin: print('{\"seconds\": 2.0}', flush=True)"
    with contender(source) as asked:
        asked.ask("no-op")
        asked.ask("no-op")
    assert asked.results.seconds == {"no-op": [2.0, 2.0]} and not asked.results.errors


def test_a_failed_case_is_not_asked_again():
    source = READY + 'for line in sys.stdin: print(\'{"error": "no"}\', flush=True)'
    with contender(source) as asked:
        asked.ask("no-op")
        asked.ask("no-op")
    assert asked.results.errors == {"no-op": "no"}


def test_a_contender_that_dies_is_reported_with_its_last_words():
    source = READY + "sys.stdin.readline(); sys.exit('too tired')"
    with contender(source) as asked:
        asked.ask("no-op")
        asked.ask("1 KiB echo")
    assert "too tired" in asked.results.errors["no-op"] and "1 KiB echo" not in asked.results.errors


@pytest.mark.slow
def test_the_children_of_a_contender_die_with_it():
    source = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        'print(\'{"ready": {"child": "%d"}}\' % child.pid, flush=True)\n'
        "sys.stdin.read()"
    )
    with contender(source) as started:
        child = psutil.Process(int(started.versions["child"]))
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_ratios_say_who_is_faster():
    assert report.show_ratio([1.0], [2.0]) == "[green]0.50[/]"
    assert report.show_ratio([2.0], [1.0]) == "[red]2.00[/]"
    assert report.show_ratio([2.0], [1.0], aim=2) == "[green]2.00[/]"
    assert report.show_ratio([], [1.0]) == "-"


def test_a_slow_round_of_both_does_not_count():
    assert report.show_ratio([1.0, 9.0, 1.0], [2.0, 18.0, 2.0]) == "[green]0.50[/]"


def test_times_have_three_digits_and_a_unit():
    assert report.show_time([0.0123456]) == "12.3 ms"
    assert report.show_time([0.0000456, 1, 0]) == "45.6 µs"


def test_cases_have_names_of_their_own():
    assert all(named(case.name) is case for case in CASES)


def test_a_round_at_least(capsys):
    with pytest.raises(SystemExit):
        rpc.main(["--rounds", "0"])
    assert "at least 1" in capsys.readouterr().err
