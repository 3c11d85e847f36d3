"""A remote call with a result, by Ray."""

import json
import time

import ray

CALLS = 1000


@ray.remote
class Worker:
    """Actor that adds."""

    def add(self, a: int, b: int) -> int:
        """Return the sum."""
        return a + b


if __name__ == "__main__":
    ray.init(log_to_driver=False)
    worker = Worker.remote()
    result = ray.get(worker.add.remote(2, 3))
    began = time.perf_counter()
    for _ in range(CALLS):
        ray.get(worker.add.remote(2, 3))
    print(json.dumps({"result": result, "seconds": (time.perf_counter() - began) / CALLS}))
