"""Tables of states as they stand on pages: one row a state, one column an event."""


def rows_of(transitions, states, events):
    """Return the lines of the table of a machine.

    Args:
        transitions: next state and actions, by state and event.
        states: the type of its states.
        events: the type of its events.
    """
    lines = [f"| state | {' | '.join(event.value for event in events)} |", "|---" * (1 + len(events)) + "|"]
    return lines + [
        f"| {state.value} |{'|'.join(_cell(transitions.get((state, event))) for event in events)}|" for state in states
    ]


def _cell(transition):
    if transition is None:
        return " "
    then, actions = transition
    words = ", ".join(action.value for action in actions)
    return f" {then.value}: {words} " if words else f" {then.value} "
