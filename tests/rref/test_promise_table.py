"""The transitions of a promise: the table in the code is the one in the description, and every other event raises."""

from itertools import product
from pathlib import Path

import pytest
from helpers.transitions import rows_of
from telegrad.base.errors import IllegalEventError
from telegrad.rref.promise_states import PROMISE_TRANSITIONS, PromiseEvent, PromiseMachine, PromiseState

PROTOCOL = Path(__file__).resolve().parents[2] / "rref" / "PROTOCOL.md"


def test_the_description_has_the_table_of_the_code():
    lines = rows_of(PROMISE_TRANSITIONS, PromiseState, PromiseEvent)
    assert "\n".join(lines) in PROTOCOL.read_text(), "the table in PROTOCOL.md must be:\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("state", "event"), [each for each in product(PromiseState, PromiseEvent) if each not in PROMISE_TRANSITIONS]
)
def test_an_event_that_is_not_in_the_table_raises(state, event):
    machine = PromiseMachine()
    machine.state = state
    with pytest.raises(IllegalEventError, match=f"is {state.value}.*{event.value}"):
        machine.handle(event)
    assert machine.state is state


def sequences(length):
    """Return the instructions of each sequence of events that can happen."""
    found = [((), PromiseState.NEW)]
    for _ in range(length):
        found += [
            ((*actions, *PROMISE_TRANSITIONS[state, event][1]), PROMISE_TRANSITIONS[state, event][0])
            for actions, state in found
            for event in PromiseEvent
            if (state, event) in PROMISE_TRANSITIONS
        ]
        found = list(dict.fromkeys(found))
    return found


def test_in_every_order_a_promise_ends_once_and_only_a_question_is_withdrawn():
    for actions, state in sequences(6):
        ends = [action for action in actions if action.value in ("keep", "break")]
        assert len(ends) == (state.value in ("kept", "broken", "over"))
        if "withdraw" in [action.value for action in actions]:
            assert state is PromiseState.OVER
