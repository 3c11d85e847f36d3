"""Short tour of remote references: ``telegrad run -n 2 examples/rref_tour.py``.

An RRef names a value that lives on another worker, its owner. References can be passed on; the owner keeps the value
while a reference exists. Without the launcher, the script starts both workers itself.
"""

from __future__ import annotations

import telegrad as tg
from telegrad.examples.start import start
from telegrad.examples.tidy import show_all_tidy

NAMES = ("alice", "bob")


class Counter:
    """Counter, an object with state; some are made on bob."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def add(self, number: int) -> int:
        """Add to the count, and return the new count."""
        self.count += number
        return self.count


def work(rank: int, world_size: int) -> None:
    """Run one worker: join the job, take the tour or serve it, shut down with the others."""
    if world_size != len(NAMES):
        raise SystemExit("this tour has two workers: telegrad run -n 2 examples/rref_tour.py")
    tg.rpc.init_rpc(NAMES[rank], rank=rank, world_size=world_size)
    if rank == 0:
        make_a_value()
        call_its_methods()
        hand_it_on()
        receive_references()
        keep_it_at_home()
        meet_an_exception()
        show_all_tidy(["bob"])  # every reference above is gone, so bob has freed every value
    tg.rpc.shutdown()


def make_a_value() -> None:
    """Make a value on bob: ``remote`` returns a reference at once; ``to_here`` fetches a copy."""
    reference = tg.rpc.remote("bob", tg.full, args=((2, 2), 3.0))
    say("remote", f"a tensor owned by {reference.owner_name()}; mine: {reference.is_owner()}")
    say("to_here", reference.to_here().tolist())


def call_its_methods() -> None:
    """Call its methods through a proxy, where the value is; only arguments and results travel."""
    counter = tg.rpc.remote("bob", Counter, args=(40,))
    say("rpc_sync", counter.rpc_sync().add(1))
    say("rpc_async", counter.rpc_async().add(1).wait())
    say("remote", counter.remote().add(1).to_here())


def hand_it_on() -> None:
    """Pass a reference as an argument; on the value's owner, ``local_value`` returns the object itself."""
    counter = tg.rpc.remote("bob", Counter)
    for number in (1, 2, 3):
        say("argument", tg.rpc.rpc_sync("bob", add_at_home, args=(counter, number)))


def receive_references() -> None:
    """Receive references in a result; the values stay where they are."""
    counters = tg.rpc.rpc_sync("bob", make_counters, args=(3,))
    say("results", [counters[name].rpc_sync().add(10) for name in sorted(counters)])


def keep_it_at_home() -> None:
    """Make a reference to a value of this worker with ``RRef(value)``, for others to call."""
    mine = tg.RRef(Counter(100))
    say("call back", tg.rpc.rpc_sync("bob", add_from_afar, args=(mine, 5)))
    say("at home", mine.local_value().count)


def meet_an_exception() -> None:
    """Catch the exception of a value that could not be made: fetching it raises."""
    broken = tg.rpc.remote("bob", int, args=("not a number",))
    try:
        broken.to_here()
    except ValueError as error:
        say("exception", f"{type(error).__name__}: {str(error).splitlines()[0]}")


def add_at_home(counter: tg.RRef, number: int) -> int:
    """Add to a counter. It runs on bob, the owner."""
    result: int = counter.local_value().add(number)
    return result


def add_from_afar(counter: tg.RRef, number: int) -> int:
    """Add to a counter of alice's. It runs on bob, a user."""
    result: int = counter.rpc_sync().add(number)
    return result


def make_counters(number: int) -> dict[str, tg.RRef]:
    """Return references to new counters. It runs on bob, which keeps the counters."""
    return {f"counter{index}": tg.RRef(Counter(index)) for index in range(number)}


def say(what: str, value: object) -> None:
    """Print one line of the tour."""
    print(f"{what:>10}: {value}", flush=True)


if __name__ == "__main__":
    start(work, len(NAMES))
