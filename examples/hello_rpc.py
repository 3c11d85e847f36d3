"""Short tour of remote calls: ``telegrad run -n 2 examples/hello_rpc.py``.

Worker "alice" calls functions on worker "bob". Both run this file; only alice takes the tour, bob answers. Without
the launcher, the script starts both workers itself.
"""

from __future__ import annotations

import asyncio
import os

import telegrad as tg
from telegrad.examples.start import start
from telegrad.examples.tidy import show_all_tidy

NAMES = ("alice", "bob")
GREETINGS = {"en": "hello", "eo": "saluton"}


def work(rank: int, world_size: int) -> None:
    """Run one worker: join the job, call or answer, shut down with the others."""
    if world_size != len(NAMES):
        raise SystemExit("this tour has two workers: telegrad run -n 2 examples/hello_rpc.py")
    tg.rpc.init_rpc(NAMES[rank], rank=rank, world_size=world_size)
    if rank == 0:
        call_and_wait()
        call_without_waiting()
        asyncio.run(call_and_await())
        send_tensors()
        send_a_lambda()
        catch_an_exception()
        show_all_tidy(["bob"])
    tg.rpc.shutdown()  # waits until every worker is done


def greet(name: str, language: str = "en") -> str:
    """Return a greeting. It runs on bob; a function travels by name when both sides can import it."""
    return f"{GREETINGS[language]}, {name}, from {tg.rpc.get_worker_info().name} (process {os.getpid()})"


def add(left: tg.Tensor, right: tg.Tensor) -> tg.Tensor:
    """Return the sum. It runs on bob; tensors arrive as tensors."""
    return left + right


def divide(numerator: int, denominator: int) -> float:
    """Return the quotient. It runs on bob, and raises there if the denominator is 0."""
    return numerator / denominator


def call_and_wait() -> None:
    """Call with ``rpc_sync``, which is like a local call."""
    say("rpc_sync", tg.rpc.rpc_sync("bob", greet, args=("alice",), kwargs={"language": "eo"}))


def call_without_waiting() -> None:
    """Call with ``rpc_async``, which returns a future at once; ``then`` adds a callback."""
    future = tg.rpc.rpc_async("bob", greet, args=("alice",))
    shouted = future.then(lambda done: done.value().upper())
    say("rpc_async", future.wait())
    say("then", shouted.wait())
    several = [tg.rpc.rpc_async("bob", divide, args=(number, 4)) for number in range(4)]
    say("wait_all", tg.futures.wait_all(several))


async def call_and_await() -> None:
    """Await futures; calls overlap like other coroutines."""
    calls = (tg.rpc.rpc_async("bob", divide, args=(1, number)) for number in (2, 4, 8))

    async def value(future: tg.futures.Future[float]) -> float:
        return await future

    say("await", await asyncio.gather(*map(value, calls)))


def send_tensors() -> None:
    """Send tensors. Their arrays travel beside the pickled message, not in it."""
    total = tg.rpc.rpc_sync("bob", add, args=(tg.ones(2, 3), tg.arange(3)))
    say("tensors", total.tolist())


def send_a_lambda() -> None:
    """Send a lambda: a function that cannot be imported travels by value, with the variables that it uses."""
    factor = 6
    say("lambda", tg.rpc.rpc_sync("bob", lambda number: number * factor, args=(7,)))


def catch_an_exception() -> None:
    """Catch an exception of bob's, which arrives with its own type, so that the usual ``except`` works."""
    try:
        tg.rpc.rpc_sync("bob", divide, args=(1, 0))
    except ZeroDivisionError as error:
        say("exception", f"{type(error).__name__}: {str(error).splitlines()[0]}")


def say(what: str, value: object) -> None:
    """Print one line of the tour."""
    print(f"{what:>10}: {value}", flush=True)


if __name__ == "__main__":
    start(work, len(NAMES))
