"""Errors with a frame whose line Python does not know: they are reported as any other, and the run goes on."""

import traceback

from telegrad.tools.known_lines import with_lines

SOURCE = """
def raises():
    raise ValueError("at no line")

def call_at_no_line():
    exec(raises.__code__.replace(co_linetable=b""))
"""
TESTS = f"""
import pytest
{SOURCE}
def test_that_fails():
    call_at_no_line()

def test_that_fails_for_such_a_reason():
    try:
        call_at_no_line()
    except ValueError as error:
        raise KeyError("later") from error

def test_that_passes():
    pass
"""


def test_such_failures_are_reported_and_the_run_goes_on(tmp_path, run_python):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p telegrad.tools.known_lines\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    told = run_python("-m", "pytest", "-n", "1", "-p", "no:cacheprovider", code=1, cwd=tmp_path)
    assert "2 failed, 1 passed" in told and "INTERNALERROR" not in told
    assert "ValueError: at no line" in told and "KeyError: 'later'" in told


def raised_at_no_line():
    made = {}
    exec(SOURCE, made)
    try:
        made["call_at_no_line"]()
    except ValueError as error:
        return error.__traceback__


def test_a_frame_without_a_line_gets_that_of_its_function():
    before = raised_at_no_line()
    found = [(each.name, each.lineno) for each in traceback.extract_tb(with_lines(before))]
    assert before.tb_next.tb_next.tb_lineno is None and found[1:] == [("call_at_no_line", 6), ("raises", 2)]


def test_a_traceback_whose_lines_are_known_stays_as_it_is():
    before = raised_at_no_line()
    before.tb_next.tb_next = None
    assert with_lines(before) is before and with_lines(None) is None
