"""Results: medians and ratios of rounds, and the file that they are written to."""

import pytest
from telegrad.benchmarks.aims import AIMS, Aim
from telegrad.benchmarks.cases import FIGURES
from telegrad.benchmarks.cases.all import CASES, named
from telegrad.benchmarks.contenders import CONTENDERS
from telegrad.benchmarks.figures import show, show_ratio
from telegrad.benchmarks.report import failures
from telegrad.benchmarks.results import Results, Row, Source, ratio_of, read

ROW = Row("no-op", "no-op", "p50")


def results_of(**seconds):
    results = Results(rows=[ROW], contenders=[Source(name, {"version": "1"}) for name in seconds])
    for name, rounds in seconds.items():
        results.record("no-op", name).rounds += [{"p50": value} for value in rounds]
    return results


def test_a_ratio_says_who_is_faster():
    assert results_of(ours=[1.0], theirs=[2.0]).ratio(ROW, "ours", "theirs") == 0.5
    assert ratio_of([], [1.0]) is None


def test_a_slow_round_of_both_does_not_count():
    assert results_of(ours=[1.0, 9.0, 1.0], theirs=[2.0, 18.0, 2.0]).ratio(ROW, "ours", "theirs") == 0.5


def test_a_file_holds_all_that_was_measured(tmp_path):
    results = results_of(ours=[1.0, 2.0], theirs=[3.0])
    results.run["load"] = "none"
    results.record("burst", "theirs").absent = "it has none"
    results.write(tmp_path / "there" / "results.json")
    assert read(tmp_path / "there" / "results.json") == results


def test_a_file_of_another_schema_is_refused(tmp_path):
    file = tmp_path / "results.json"
    file.write_text('{"schema": 0}')
    with pytest.raises(ValueError, match="schema 0"):
        read(file)


def test_failures_are_shown_by_reason_without_tracebacks():
    results = results_of(ours=[1.0])
    for case in ("a", "b"):
        results.record(case, "ours").error = "it ended:\nTraceback\nOSError: no"
    for case in "abcd":
        results.record(case, "theirs").absent = "it only copies"
    assert failures(results) == {"it ended: OSError: no": ["ours (a, b)"], "it only copies": ["theirs (4 cases)"]}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123456, "s", "12.3 ms"),
        (0.0000456, "s", "45.6 µs"),
        (1234.5, "1/s", "1.23 k/s"),
        (3 * 2**20, "B", "3 MiB"),
        (0.99999, "s", "1000 ms"),
    ],
)
def test_figures_have_three_digits_and_a_unit(value, unit, text):
    assert show([value], unit) == text
    assert show([], unit) == ""


def test_ratios_have_two_or_three_digits():
    assert [show_ratio(ratio) for ratio in (None, 0.126, 12.34, 123.4)] == ["", "0.13", "12.3", "123"]


def test_aims_of_times_are_reached_from_above_and_of_rates_from_below():
    time, rate = Aim("no-op", "a", "b", 0.2, 0.1), Aim("burst", "a", "b", 8, 12, more=True)
    assert [time.reached(ratio) for ratio in (0.3, 0.2, 0.1)] == ["no", "yes", "moonshot"]
    assert [rate.reached(ratio) for ratio in (7, 8, 12)] == ["no", "yes", "moonshot"]


def test_names_are_unique_and_aims_and_rows_agree():
    rows = [row for case in CASES for row in case.rows()]
    assert len({row.name for row in rows}) == len(rows) and {row.figure for row in rows} <= set(FIGURES)
    assert all(named(case.name) is case for case in CASES)
    contenders = {entry.name for entry in CONTENDERS}
    assert len(contenders) == len(CONTENDERS)
    for aim in AIMS:
        (figure,) = (row.figure for row in rows if row.name == aim.row)
        assert {aim.ours, aim.theirs} <= contenders and aim.more == FIGURES[figure].more_is_better
