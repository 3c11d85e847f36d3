"""Ticks on an event loop: more and more rarely while there is something to do, and none when there is not."""

from telegrad.rpc.threads.timers import TICK_SECONDS, Ticker, every


class Loop:
    """Event loop whose timers the test runs."""

    def __init__(self):
        self.delays, self.timer = [], None

    def call_soon_threadsafe(self, action, context):
        action()

    def call_later(self, seconds, action, *args, context):
        self.delays.append(seconds / TICK_SECONDS)
        self.timer = (action, args)

    def run_timer(self):
        action, args = self.timer
        self.timer = None
        action(*args)


def test_ticks_come_more_and_more_rarely_and_begin_anew_after_a_pause():
    loop, answers = Loop(), [True] * 4 + [False] * 2
    ticker = Ticker(loop, lambda: answers.pop(0), 4 * TICK_SECONDS)
    assert ticker.start() and ticker.start()
    while loop.timer:
        loop.run_timer()
    assert loop.delays == [1, 2, 4, 4, 4] and not answers
    ticker.start()
    assert loop.delays[-1] == 1


def test_what_comes_while_the_last_tick_ends_has_one_of_its_own():
    loop, answers = Loop(), [False, True]
    Ticker(loop, lambda: answers.pop(0)).start()
    loop.run_timer()
    assert loop.delays == [1, 1]


def test_every_calls_in_equal_intervals_while_there_is_something_to_do():
    loop, answers = Loop(), [True, True, False, False]
    every(3 * TICK_SECONDS, lambda: answers.pop(0), loop).start()
    while loop.timer:
        loop.run_timer()
    assert loop.delays == [3.0] * 3 and not answers
