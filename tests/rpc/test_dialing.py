"""Dials: few at a time, and none holds a place for long whose peer does not answer; a slow peer's system does."""

import asyncio

import pytest
from telegrad.core.futures import Future
from telegrad.rpc.lanes.dialing import DialingPlaces
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing.check_lane import pair


class Dials:
    """Dials that stay in their places until they are told to end."""

    def __init__(self, places):
        self.places, self.begun, self.ends = places, [], {}
        self.most = self.now = 0

    async def dial(self, number):
        async with self.places.place():
            self.begun.append(number)
            self.now += 1
            self.most = max(self.most, self.now)
            self.ends[number] = asyncio.Event()
            try:
                await self.ends[number].wait()
            finally:
                self.now -= 1

    def start(self, count):
        return [asyncio.ensure_future(self.dial(number)) for number in range(count)]

    async def until(self, condition):
        async def look():
            while not condition():
                await asyncio.sleep(0)

        await asyncio.wait_for(look(), 20)


def test_so_many_dial_at_a_time_and_the_others_in_their_order():
    async def run():
        dials = Dials(DialingPlaces(2, 60.0))
        tasks = dials.start(7)
        for number in range(7):
            await dials.until(lambda number=number: number in dials.ends)
            dials.ends[number].set()
        await asyncio.gather(*tasks)
        assert dials.begun == list(range(7)) and dials.most == 2

    asyncio.run(run())


def test_a_dial_that_takes_long_gives_its_place_to_the_next():
    async def run():
        dials = Dials(DialingPlaces(1, 0.001))
        tasks = dials.start(5)
        await dials.until(lambda: len(dials.begun) == 5)
        for end in dials.ends.values():
            end.set()
        await asyncio.gather(*tasks)
        assert dials.places._free._value == 1, "each place was given back once"

    asyncio.run(run())


@pytest.mark.parametrize("fails", [asyncio.CancelledError, OSError])
def test_a_dial_that_fails_gives_its_place_back(fails):
    async def run():
        places = DialingPlaces(1, 60.0)
        for _ in range(3):
            with pytest.raises(fails):
                async with places.place():
                    raise fails
        async with places.place():
            pass

    asyncio.run(run())


def test_where_dials_take_long_places_are_held_longer_and_where_they_are_quick_again_no_longer():
    async def take(places, seconds, error=None):
        loop = asyncio.get_running_loop()
        now = loop.time
        async with places.place():
            loop.time = lambda: now() + seconds
            if error:
                raise error
        loop.time = now

    async def run():
        places = DialingPlaces(1, 0.5, 1000.0)
        with pytest.raises(OSError):
            await take(places, 100.0, OSError())
        assert places.seconds == 0.5  # it says nothing of how long a dial takes
        await take(places, 200.0)
        assert 400.0 <= places.seconds < 500.0
        dials = Dials(places)
        tasks = dials.start(3)
        for number in range(3):
            await dials.until(lambda number=number: number in dials.ends)
            dials.ends[number].set()
        await asyncio.gather(*tasks)
        assert dials.most == 1
        await take(places, 5000.0)
        assert places.seconds == 1000.0
        await take(places, 0.0)
        assert 0.5 <= places.seconds < 100.0

    asyncio.run(run())


def test_the_system_of_a_slow_peer_is_heard_before_it_has_shaken_hands():
    with pair(GrpcLane) as both:
        both.acceptor.known = Future()
        both.session.start()
        both.dialer.until(lambda: both.dialer.answers == [both.session])
        assert not both.dialer.opened
        both.acceptor.known.set_result(None)
        both.dialer.until(lambda: both.dialer.opened == [both.session])
