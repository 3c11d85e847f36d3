"""A call's states: the table in the code is the one on the page, every order of events ends, and a call is a small record."""

from itertools import product
from pathlib import Path

import pytest
from telegrad.rpc import call_states
from telegrad.rpc.call_states import ANSWERED, ENDED, SERVING, WAITING, ServingState
from telegrad.rpc.server_call import ServerCall

PAGE = Path(__file__).resolve().parents[2] / "docs" / "design" / "rpc.md"
EVENTS = ["start", "stream", "park", "answer", "drop", "end"]


def states_of(table):
    """Return the states in the order in which the table has them."""
    return list(dict.fromkeys(state for state, _ in table))


def rows(table, events):
    yield f"| state | {' | '.join(events)} |"
    yield f"|{'|'.join(['---'] * (1 + len(events)))}|"
    for state in states_of(table):
        cells = [f" {table[state, event].name} " if (state, event) in table else " " for event in events]
        yield f"| {state.name} |{'|'.join(cells)}|"


def arrows(table):
    """Return the lines of a picture, without events that change nothing."""
    found = {}
    for (state, event), then in table.items():
        if state is not then:
            found.setdefault((state, then), []).append(event)
    return [f"    {one.name} --> {other.name}: {', '.join(events)}" for (one, other), events in found.items()]


@pytest.mark.parametrize(("table", "events"), [(SERVING, EVENTS)], ids=["callee"])
def test_the_page_has_the_table_and_the_picture_of_the_code(table, events):
    for lines in (list(rows(table, events)), arrows(table)):
        assert "\n".join(lines) in PAGE.read_text(), "rpc.md must have:\n" + "\n".join(lines)


@pytest.mark.parametrize(("table", "events"), [(SERVING, EVENTS)], ids=["callee"])
def test_a_state_has_the_states_that_follow_it_and_no_others(table, events):
    for state, event in product(states_of(table), events):
        assert getattr(state, event, None) is table.get((state, event))


def test_a_request_ends_once_in_every_order_of_events_and_stays_so():
    assert set(states_of(SERVING)) == {each for each in vars(call_states).values() if isinstance(each, ServingState)}
    reached, left = {WAITING}, [WAITING]
    while left:
        state = left.pop()
        follow = {then for (one, _), then in SERVING.items() if one is state}
        assert WAITING not in follow, "a request that was taken does not wait again"
        left += follow - reached
        reached |= follow
        # An answer ends it, or leaves a stream, which ends with its generator.
        assert state.answer is ENDED or (state.answer is ANSWERED and state.answer.end is ENDED)
        assert state.drop in (ENDED, ANSWERED)
    assert reached == set(states_of(SERVING))
    assert {then for (state, _), then in SERVING.items() if state is ENDED} == {ENDED}


def slots(kind):
    return [name for each in kind.__mro__ for name in getattr(each, "__slots__", ())]


def test_a_request_has_few_fields():
    assert len(slots(ServerCall)) <= 18 and ServerCall.__dictoffset__ == 0
