"""Worker of the attacked job. Rank 1 calls rank 0 all the time, and reports how long its calls took on request."""

from __future__ import annotations

import json
import sys
import threading
import time

from telegrad import rpc

PAUSE_SECONDS = 0.002


class Caller:
    """Thread that calls the other worker again and again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._milliseconds: list[float] = []
        self._errors: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def report(self) -> str:
        """Return what happened since the last report."""
        with self._lock:
            told = json.dumps({"milliseconds": self._milliseconds, "errors": self._errors})
            self._milliseconds, self._errors = [], []
        return told

    def stop(self) -> None:
        """End the calls."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(PAUSE_SECONDS):
            began = time.perf_counter()
            try:
                assert rpc.rpc_sync("worker0", abs, (-1,), timeout=30) == 1
            except Exception as error:
                with self._lock:
                    self._errors.append(str(error))
            with self._lock:
                self._milliseconds.append((time.perf_counter() - began) * 1e3)


def main() -> None:
    """Run one worker until the standard input ends: each line of it asks for a report."""
    rank = int(sys.argv[1])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    caller = Caller() if rank == 1 else None
    print("ready", flush=True)
    for _ in sys.stdin:
        print(caller.report() if caller else json.dumps(rpc.debug_info()["joiners_refused"]), flush=True)
    if caller:
        caller.stop()
    rpc.shutdown(timeout=30)


if __name__ == "__main__":
    main()
