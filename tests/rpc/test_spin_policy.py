"""Decisions about reading a stream, as a table of situations: how long to spin, and when the loop watches the socket."""

import pytest
from telegrad.rpc.lanes.spinning import (
    AWAY_SECONDS,
    CONFIDENCE,
    COPY_SECONDS,
    DISTRUST,
    LONG_SECONDS,
    MOST_DISTRUST,
    OFTEN_SECONDS,
    QUICK_SECONDS,
    REQUEST_SPIN_SECONDS,
    SOON_SECONDS,
    SPIN_SECONDS,
    STEADY,
    SpinPolicy,
)

NO_YIELD = float("-inf")
LATE = 1.0  # seconds: longer than all that is "soon" here


class Story:
    """A policy, and a clock that goes on as things happen to its stream."""

    def __init__(self):
        self.policy, self.now = SpinPolicy(), 100.0

    def turn(
        self, gap=LATE, spun=0.0, last_yield=None, slept=0.0, found=True, serves=False, followed=False, looked=False
    ):
        """Read for one turn; return its decisions: for how long to spin, and whether the loop need not watch."""
        self.now += gap
        spin = self.policy.begin(self.now, serves)
        self.now += spun
        if slept or last_yield is not None:
            self.policy.nothing_came(self.now, NO_YIELD if last_yield is None else last_yield)
        self.now += slept
        return spin, self.policy.end(self.now, found, serves, followed, looked)

    def found(self, times=1, **of_turn):
        for _ in range(times):
            decisions = self.turn(spun=SPIN_SECONDS / 2, **of_turn)
        return decisions

    def useless(self, times=1):
        for _ in range(times):
            self.turn(spun=SPIN_SECONDS, slept=LATE, found=False)

    def slept(self, seconds, times=1, **of_turn):
        for _ in range(times):
            self.turn(slept=seconds, **of_turn)

    def long_yield(self):
        self.turn(last_yield=LONG_SECONDS * 1.01, slept=LATE, found=False)

    def read_by_loop(self, seconds):
        self.policy.loop_read = self.now + seconds


SHORT, LONG = SOON_SECONDS / 2, 2 * SOON_SECONDS
AGAIN = ("slept", SHORT, DISTRUST)  # enough short sleeps after a long yield
SPINS = {
    "a new stream": ([], SPIN_SECONDS),
    "answers come at once": ([("found", 50)], SPIN_SECONDS),
    "all but one of the useless spins that end it": ([("useless", CONFIDENCE - 1)], SPIN_SECONDS),
    "so many useless spins in a row": ([("useless", CONFIDENCE)], 0.0),
    "useless spins, not in a row": ([("useless", CONFIDENCE - 1), ("found", 3), ("useless", 3)], SPIN_SECONDS),
    "a frame that came after a sleep does not make up for a spin": ([("slept", LONG, CONFIDENCE)], 0.0),
    "then a short sleep: it would have come while spinning": ([("useless", CONFIDENCE), ("slept", SHORT)], SPIN_SECONDS),
    "then a long sleep": ([("useless", CONFIDENCE), ("slept", LONG)], 0.0),
    "then the loop reads soon": ([("useless", CONFIDENCE), ("read_by_loop", SHORT - LATE)], SPIN_SECONDS),
    "then the loop reads late": ([("useless", CONFIDENCE), ("read_by_loop", LONG)], 0.0),
    "a long yield: others need the core": ([("long_yield",)], 0.0),
    "a long yield, fewer short sleeps": ([("long_yield",), ("slept", SHORT, DISTRUST - 1)], 0.0),
    "a long yield, enough short sleeps": ([("long_yield",), AGAIN], SPIN_SECONDS),
    "a second one": ([("long_yield",), ("long_yield",), ("slept", SHORT, 4 * DISTRUST - 1)], 0.0),
    "a second one, in the end": ([("long_yield",), ("long_yield",), ("slept", SHORT, 4 * DISTRUST)], SPIN_SECONDS),
    "many": ([("long_yield",)] * 9 + [("slept", SHORT, MOST_DISTRUST - 1)], 0.0),
    "many, in the end": ([("long_yield",)] * 9 + [("slept", SHORT, MOST_DISTRUST)], SPIN_SECONDS),
    "one after spinning has paid": ([("long_yield",), AGAIN, ("found", CONFIDENCE), ("long_yield",), AGAIN], SPIN_SECONDS),
}  # fmt: skip


@pytest.mark.parametrize(("events", "seconds"), SPINS.values(), ids=SPINS)
def test_how_long_a_thread_spins(events, seconds):
    story = Story()
    for name, *args in events:
        getattr(story, name)(*args)
    assert story.turn()[0] == seconds


def test_a_thread_that_serves_spins_for_less():
    assert Story().turn(serves=True)[0] == REQUEST_SPIN_SECONDS


def test_a_request_that_comes_while_the_thread_sleeps_makes_up_for_the_spin():
    story = Story()
    for _ in range(2 * CONFIDENCE):
        spin, _ = story.turn(spun=REQUEST_SPIN_SECONDS, last_yield=0.0, slept=LONG, serves=True)
    assert spin == REQUEST_SPIN_SECONDS


@pytest.mark.parametrize(("size", "more"), [(4000, 1e-6), (1 << 20, (1 << 20) / 4e9), (1 << 30, COPY_SECONDS)])
def test_the_peer_has_time_to_copy_a_large_frame_once(size, more):
    story = Story()
    story.policy.allow_for(size)
    assert [story.turn()[0], story.turn()[0]] == [pytest.approx(SPIN_SECONDS + more), SPIN_SECONDS]


def test_several_sleeps_of_one_turn_count_each():
    """A thread that reads for others sleeps several times before its own answer comes."""
    story, policy = Story(), SpinPolicy()
    story.policy = policy
    story.long_yield()
    assert policy.begin(story.now, False) == 0.0
    for step in range(DISTRUST):
        policy.nothing_came(story.now + step * SHORT, NO_YIELD)
    assert policy.confidence == 0


CLOSE, APART = OFTEN_SECONDS / 2, 2 * OFTEN_SECONDS
KEEPS = {
    "the first turn": ([], {}, False),
    "fewer that follow closely": ([{"gap": CLOSE}] * (STEADY - 2), {"gap": CLOSE}, False),
    "enough that follow closely": ([{"gap": CLOSE}] * (STEADY - 1), {"gap": CLOSE}, True),
    "one was apart": ([{"gap": CLOSE}] * 2 + [{"gap": APART}] + [{"gap": CLOSE}] * 2, {"gap": CLOSE}, False),
    "others wait to read": ([{"followed": True}] * (STEADY - 1), {"followed": True}, True),
    "the loop looks already": ([], {"gap": CLOSE, "looked": True}, True),
    "the loop looks already, and it was apart": ([], {"gap": APART, "looked": True}, False),
    "nothing was found": ([{"gap": CLOSE}] * STEADY, {"gap": CLOSE, "found": False}, False),
    "quick requests": ([{"gap": QUICK_SECONDS / 2, "serves": True}] * (STEADY - 1), {"gap": 0.0, "serves": True}, True),
    "slow requests": (
        [{"gap": QUICK_SECONDS * 1.5, "serves": True}] * STEADY,
        {"gap": CLOSE * 1.5, "serves": True},
        False,
    ),
}


@pytest.mark.parametrize(("before", "last", "keeps"), KEEPS.values(), ids=KEEPS)
def test_whether_the_loop_need_not_watch_after_a_turn(before, last, keeps):
    story = Story()
    story.turn()
    for each in before:
        story.turn(**each)
    assert story.turn(**last)[1] is keeps


def test_the_loop_takes_the_socket_back_when_no_thread_reads_and_nothing_is_used():
    story = Story()
    story.found()
    looks = [(AWAY_SECONDS / 2, 0), (2 * AWAY_SECONDS, 7), (2 * AWAY_SECONDS, 7)]
    assert [story.policy.keeps(story.now + after, progress) for after, progress in looks] == [True, True, False]
    story.policy.paused(8)
    assert not story.policy.keeps(story.now + LATE, 8)


def test_the_loop_looks_again_at_a_thread_that_sleeps_only_if_turns_end_meanwhile():
    story = Story()
    story.found()
    assert story.policy.looks_again(story.now + 1, asleep=True)
    assert not story.policy.looks_again(story.now + 2, asleep=True)
    assert story.policy.looks_again(story.now + 3, asleep=False)
