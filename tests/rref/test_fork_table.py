"""The transitions of a fork: the table in the code is the one in the protocol's description, and every other event raises."""

from itertools import product
from pathlib import Path

import pytest
from helpers.transitions import rows_of
from telegrad.base.errors import IllegalEventError
from telegrad.rref.forks import FORK_TRANSITIONS, Fork, ForkEvent, State
from telegrad.rref.ids import GlobalId, WorkerKey

PROTOCOL = Path(__file__).resolve().parents[2] / "rref" / "PROTOCOL.md"


def test_the_description_has_the_table_of_the_code():
    lines = rows_of(FORK_TRANSITIONS, State, ForkEvent)
    assert "\n".join(lines) in PROTOCOL.read_text(), "the table in PROTOCOL.md must be:\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("state", "event"), [each for each in product(State, ForkEvent) if each not in FORK_TRANSITIONS]
)
def test_an_event_that_is_not_in_the_table_raises(state, event):
    fork = Fork(GlobalId(0, 0, 1), GlobalId(0, 0, 2), WorkerKey(0), state)
    with pytest.raises(IllegalEventError, match=f"is {state.value}.*{event.value}"):
        fork.handle(event)
    assert fork.state is state
