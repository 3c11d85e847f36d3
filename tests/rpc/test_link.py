"""A link's states: the table in the code is the one on the page, and all orders of events leave no link and no call waiting."""

from itertools import product
from pathlib import Path

import pytest
from helpers.transitions import rows_of
from telegrad.base.errors import IllegalEventError
from telegrad.rpc.links.link import (
    LINK_TRANSITIONS,
    REDIAL_CAP_SECONDS,
    REDIAL_SECONDS,
    ROUTES,
    Link,
    LinkAction,
    LinkEvent,
    LinkState,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "design" / "rpc_connections.md"
LENGTH = 5  # of the sequences of events: some 4,000


def test_the_page_has_the_table_of_the_code():
    lines = rows_of(LINK_TRANSITIONS, LinkState, LinkEvent)
    assert "\n".join(lines) in PAGE.read_text(), "the table in rpc_connections.md must be:\n" + "\n".join(lines)


def test_the_page_has_the_arrows_of_the_code():
    arrows: dict[tuple[LinkState, LinkState], list[str]] = {}
    for (state, event), (then, _) in LINK_TRANSITIONS.items():
        if state is not then:
            arrows.setdefault((state, then), []).append(event.value)
    lines = [f"    {one.name} --> {other.name}: {', '.join(events)}" for (one, other), events in arrows.items()]
    assert "\n".join(lines) in PAGE.read_text(), "the picture in rpc_connections.md must be:\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("state", "event"), [each for each in product(LinkState, LinkEvent) if each not in LINK_TRANSITIONS]
)
def test_an_event_that_is_not_in_the_table_raises_and_changes_nothing(state, event):
    link = Link()
    link.state = state
    with pytest.raises(IllegalEventError, match=f"is {state.value}.*{event.value}"):
        link.next(event)
    assert link.state is state


class Dial:
    """Connection as a link sees it, and the calls that wait in it."""

    def __init__(self):
        self.opened = self.told = False  # its lane lets frames leave, and has told so
        self.calls = 0


class World:
    """A link, its driver and its lane: ``may`` are the events that can come next."""

    def __init__(self):
        self.link, self.now, self.told = Link(), 0.0, []
        self.unreported = []  # sessions that were found closed: their lane reports the end later
        self.sent = self.dropped = self.failed = self.called = 0

    def may(self):
        link = self.link
        yield "call"
        yield "cut"
        yield "lost"
        if link.redial_at is not None:
            yield "due"
        if link.dialed is not None:
            yield "end"
            yield "find"
            if not link.dialed.told:
                yield "open"
            if not link.dialed.opened:
                yield "leave"
        if self.unreported:
            yield "report"
        if link.accepted:
            yield "other"
        elif link.state is not LinkState.GONE:
            yield "accept"

    def do(self, event):
        getattr(self, event)()
        self.check()

    def dial(self):
        if self.link.dials:
            fresh, kept = Dial(), self.link.kept
            if kept is not None:
                fresh.calls, kept.calls = kept.calls, 0
            assert LinkAction.START in self.link.dial(fresh)

    def call(self):
        link = self.link
        self.called += 1
        if link.state in (LinkState.CUT, LinkState.GONE):
            self.failed += 1
            return
        self.dial()
        if link.dialed.opened:
            self.sent += 1
        else:
            link.dialed.calls += 1

    def due(self):
        assert self.link.redial_at is not None
        self.now = max(self.now, self.link.redial_at)
        self.dial()

    def leave(self):
        session = self.link.dialed
        session.opened = True
        self.sent += session.calls
        session.calls = 0

    def open(self):
        link, session = self.link, self.link.dialed
        self.leave()
        session.told = True
        announced = LinkAction.ANNOUNCE in link.opened(session)
        assert announced is (link.state is LinkState.OPEN)

    def end(self):
        session = self.link.dialed
        self.link.ended(session, self.now)
        self.lose(session)

    def find(self):
        session = self.link.dialed
        assert self.link.found_closed(session, self.now, 1)
        self.unreported.append(session)
        if session is not self.link.kept:
            self.lose(session)

    def report(self):
        self.link.ended(self.unreported.pop(), self.now)

    def accept(self):
        self.link.accepted.append(Dial())

    def other(self):
        self.link.ended(self.link.accepted[0], self.now)

    def cut(self):
        if LinkAction.FAIL in self.link.cut_off("nobody answers", self.now):
            self.told.append("cut")
            self.fail_waiting()

    def lost(self):
        if LinkAction.DROP in self.link.lost("it died"):
            self.told.append("lost")
            self.fail_waiting()
            self.link.kept = None

    def fail_waiting(self):
        for session in (self.link.dialed, self.link.kept):
            if session is not None:
                self.failed += session.calls
                session.calls = 0

    def lose(self, session):
        if self.link.state is LinkState.GONE:
            self.failed += session.calls
            session.calls = 0

    def check(self):
        link, state = self.link, self.link.state
        waiting = sum(each.calls for each in (link.dialed, link.kept) if each is not None)
        assert self.called == self.sent + self.failed + waiting, "a call was lost, or is in two places"
        assert bool(link.reason) is (state in (LinkState.CUT, LinkState.GONE))
        if state in (LinkState.DIALING, LinkState.OPEN):
            assert link.dialed is not None and link.redial_at is None and link.kept is None
            assert link.dialed.told is (state is LinkState.OPEN)
        elif state is LinkState.UNDIALED:
            assert link.dialed is None and link.redial_at is None
            assert link.kept is None or self.unreported, "its calls would wait until another call comes"
        elif state is LinkState.BROKEN:
            assert link.dialed is None and link.redial_at is not None
        elif state is LinkState.CUT:
            assert (link.dialed is None) is (link.redial_at is not None), "either a redial is due or one is under way"
        else:
            assert link.redial_at is None and waiting == 0 and link.latest is None
        assert self.told.count("lost") <= 1 and "lost" not in self.told[:-1]

    def settle(self):
        """Let everything happen that is under way; the network works again."""
        while self.unreported:
            self.do("report")
        if self.link.redial_at is not None:
            self.do("due")
        if self.link.dialed is not None and self.link.state is not LinkState.GONE and not self.link.dialed.told:
            self.do("open")
        assert self.link.state in (LinkState.UNDIALED, LinkState.OPEN, LinkState.GONE)
        assert self.called == self.sent + self.failed, "a call waits for ever"


def replay(events):
    world = World()
    for event in events:
        world.do(event)
    return world


def every_order(length):
    """Yield all sequences of events that can happen, up to a length."""
    shorter = [()]
    yield ()
    for _ in range(length):
        shorter = [(*events, event) for events in shorter for event in replay(events).may()]
        yield from shorter


def test_every_order_of_events_leaves_nothing_waiting():
    seen = set()
    for events in every_order(LENGTH):
        world = replay(events)
        seen.add(world.link.state)
        try:
            world.settle()
        except AssertionError as error:
            raise AssertionError(f"{error} after {events}") from error
    assert seen == set(LinkState)


def test_pauses_between_redials_grow_up_to_a_limit_and_begin_anew_when_the_link_was_open():
    world, pauses = World(), []
    world.call()
    for _ in range(8):
        world.end()
        pauses.append(world.link.redial_at - world.now)
        world.due()
    assert pauses[0] == 0.0 and pauses[1] == pytest.approx(2 * REDIAL_SECONDS)
    assert pauses == sorted(pauses) and pauses[-1] == REDIAL_CAP_SECONDS
    world.open()
    world.end()
    assert world.link.redial_at == world.now


def test_a_call_tries_a_limited_number_of_sessions():
    link, tried = Link(), 0
    while True:
        link.dial(session := Dial())
        tried += 1
        if not link.found_closed(session, 0.0, tried):
            break
    assert tried == ROUTES
