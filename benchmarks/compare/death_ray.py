"""A worker that dies in the middle of a call, by Ray."""

import json
import os
import signal
import time

import ray


@ray.remote
class Worker:
    """Actor that dies when it is asked to."""

    def die(self) -> None:
        """Kill this worker after a moment."""
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    def abs(self, number: int) -> int:
        """Return the magnitude."""
        return abs(number)


if __name__ == "__main__":
    ray.init(log_to_driver=False, num_cpus=4)
    first, second = Worker.remote(), Worker.remote()
    ray.get([first.abs.remote(1), second.abs.remote(1)])
    began = time.perf_counter()
    try:
        ray.get(first.die.remote())
    except ray.exceptions.RayActorError as error:
        seconds = time.perf_counter() - began - 0.5
        others = ray.get(second.abs.remote(-7))
        print(json.dumps({"error": f"{type(error).__name__}: {error}", "seconds": seconds, "others": others}))
