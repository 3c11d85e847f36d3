"""A remote call with a result, by Monarch."""

import json
import time

from monarch.actor import Actor, endpoint, this_host

CALLS = 1000


class Worker(Actor):
    """Actor that adds."""

    @endpoint
    def add(self, a: int, b: int) -> int:
        """Return the sum."""
        return a + b


def main() -> None:
    """Call, and print the result and the time."""
    worker = this_host().spawn_procs({"gpus": 1}).spawn("worker", Worker)
    result = worker.add.call_one(2, 3).get()
    began = time.perf_counter()
    for _ in range(CALLS):
        worker.add.call_one(2, 3).get()
    print(json.dumps({"result": result, "seconds": (time.perf_counter() - began) / CALLS}), flush=True)


if __name__ == "__main__":
    main()
