"""A short tour of remote references: ``telegrad run -n 2 examples/rref_tour.py``.

An RRef names a value that lives on another worker, its owner. References can be passed on; the owner keeps the value
while anybody holds one. Run without the launcher, the script starts both workers itself.
"""

from __future__ import annotations

import telegrad as tg
from telegrad.examples.start import start
from telegrad.examples.tidy import show_all_tidy

NAMES = ("alice", "bob")


class Counter:
    """A thing with a state, to live on bob."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def add(self, number: int) -> int:
        """Add, and return the new count."""
        self.count += number
        return self.count


def work(rank: int, world_size: int) -> None:
    """One worker's life: meet the others, take the tour or serve it, leave together."""
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
    """``remote`` makes a value on bob and returns a reference at once; ``to_here`` fetches a copy."""
    reference = tg.rpc.remote("bob", tg.full, args=((2, 2), 3.0))
    say("remote", f"a tensor owned by {reference.owner_name()}; mine: {reference.is_owner()}")
    say("to_here", reference.to_here().tolist())


def call_its_methods() -> None:
    """A proxy calls methods where the value lives; only arguments and results travel."""
    counter = tg.rpc.remote("bob", Counter, args=(40,))
    say("rpc_sync", counter.rpc_sync().add(1))
    say("rpc_async", counter.rpc_async().add(1).wait())
    say("remote", counter.remote().add(1).to_here())


def hand_it_on() -> None:
    """A reference may be an argument; on its owner, ``local_value`` is the very object."""
    counter = tg.rpc.remote("bob", Counter)
    for number in (1, 2, 3):
        say("argument", tg.rpc.rpc_sync("bob", add_at_home, args=(counter, number)))


def receive_references() -> None:
    """A result may be a reference, or hold some; the values stay where they are."""
    counters = tg.rpc.rpc_sync("bob", make_counters, args=(3,))
    say("results", [counters[name].rpc_sync().add(10) for name in sorted(counters)])


def keep_it_at_home() -> None:
    """``RRef(value)`` wraps a value of one's own, for others to call back."""
    mine = tg.RRef(Counter(100))
    say("call back", tg.rpc.rpc_sync("bob", add_from_afar, args=(mine, 5)))
    say("at home", mine.local_value().count)


def meet_an_exception() -> None:
    """If making the value fails, whoever asks for it gets the exception."""
    broken = tg.rpc.remote("bob", int, args=("not a number",))
    try:
        broken.to_here()
    except ValueError as error:
        say("exception", f"{type(error).__name__}: {str(error).splitlines()[0]}")


def add_at_home(counter: tg.RRef, number: int) -> int:
    """Runs on bob, the owner."""
    result: int = counter.local_value().add(number)
    return result


def add_from_afar(counter: tg.RRef, number: int) -> int:
    """Runs on bob, a user of alice's counter."""
    result: int = counter.rpc_sync().add(number)
    return result


def make_counters(number: int) -> dict[str, tg.RRef]:
    """Runs on bob; the caller gets references, bob keeps the counters."""
    return {f"counter{index}": tg.RRef(Counter(index)) for index in range(number)}


def say(what: str, value: object) -> None:
    """Print one line of the tour."""
    print(f"{what:>10}: {value}", flush=True)


if __name__ == "__main__":
    start(work, len(NAMES))
