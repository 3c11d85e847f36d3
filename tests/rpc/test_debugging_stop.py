"""Stop of a thread that is held: its output, the lines that it is given, and its bounds."""

import pytest
from telegrad.base.errors import RpcError
from telegrad.rpc.debugging.stop import MOST_OUTPUT, MOST_TYPED, HeldPlace, Stop

PLACE = HeldPlace("w", "MainThread", "train.py", 3, "step")


def test_output_is_given_from_the_place_that_was_asked_for():
    stop = Stop(1, PLACE, 0)
    stop.write("abc")
    assert stop.said(0).output == "abc"
    stop.write("de")
    assert (stop.said(3).output, stop.said(3).seen) == ("de", 5)


def test_output_has_a_bound():
    stop = Stop(1, PLACE, 0)
    stop.write("x" * MOST_OUTPUT)
    stop.write("end")
    said = stop.said(0)
    assert len(said.output) == MOST_OUTPUT and said.output.endswith("xend") and said.seen == MOST_OUTPUT + 3


def test_lines_that_wait_have_a_bound_and_none_is_taken_after_the_end():
    stop = Stop(1, PLACE, 0)
    for number in range(MOST_TYPED):
        stop.give(f"p {number}\n")
    with pytest.raises(RpcError, match="wait to be read"):
        stop.give("p 1\n")
    assert [stop.read_line() for _ in range(3)] == ["p 0\n", "p 1\n", "p 2\n"]
    stop.end()
    with pytest.raises(RpcError, match="goes on"):
        stop.give("p 1\n")
    assert stop.said(0).state == "ended" and stop.changed() is None


def test_a_thread_that_is_at_its_prompt_is_not_given_up():
    stop = Stop(1, PLACE, 0)
    assert stop._next() is None and not stop.give_up()
    stop.give("next\n")
    assert not stop.give_up()  # its line is not read yet
    assert stop.read_line() == "next\n" and stop.give_up() and stop.read_line() is None


def test_small_pieces_of_output_are_kept_up_to_the_bound():
    stop = Stop(1, PLACE, 0)
    for _ in range(MOST_OUTPUT // 64 + 10):
        stop.write("x" * 63)
        stop.write("\n")
    said = stop.said(MOST_OUTPUT)
    assert said.seen == MOST_OUTPUT + 640 and len(said.output) == 640 and len(stop.said(0).output) == MOST_OUTPUT
