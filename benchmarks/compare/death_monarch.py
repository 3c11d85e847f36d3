"""A worker that dies in the middle of a call, by Monarch."""

import json
import os
import signal
import time

import monarch.actor
from monarch.actor import Actor, endpoint, this_host


class Worker(Actor):
    """Actor that dies when it is asked to."""

    @endpoint
    def die(self) -> None:
        """Kill this worker after a moment."""
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    @endpoint
    def abs(self, number: int) -> int:
        """Return the magnitude."""
        return abs(number)


def main() -> None:
    """Print what the caller sees."""
    monarch.actor.unhandled_fault_hook = lambda failure: None  # without it this process is ended, too, by SIGINT
    first = this_host().spawn_procs({"gpus": 1}).spawn("first", Worker)
    second = this_host().spawn_procs({"gpus": 1}).spawn("second", Worker)
    first.abs.call_one(1).get(), second.abs.call_one(1).get()
    began = time.perf_counter()
    try:
        first.die.call_one().get()
    except Exception as error:
        seconds = time.perf_counter() - began - 0.5
        others = second.abs.call_one(-7).get()
        line = {"error": f"{type(error).__name__}: {error}", "seconds": seconds, "others": others}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
