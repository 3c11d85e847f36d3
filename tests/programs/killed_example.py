"""Example whose workers kill themselves once: ``killed_example.py EXAMPLE RANK:MODULE.FUNCTION:CALL... ARGUMENTS``."""

import importlib
import itertools
import os
import signal
import sys


def kill_in(place, call):
    """Let that call of a function or method of an example end the process."""
    module, *names, last = place.split(".")
    owner = importlib.import_module(f"telegrad.examples.{module}")
    for name in names:
        owner = getattr(owner, name)
    function, calls = getattr(owner, last), itertools.count(1)

    def counted(*args, **kwargs):
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    setattr(owner, last, counted)


def main():
    """Run one worker."""
    example, *arguments = sys.argv[1:]
    kills = [each for each in arguments if each[0].isdigit() and each.count(":") == 2]
    if os.environ["TELEGRAD_RESTART_COUNT"] == "0":
        for rank, place, call in (kill.split(":") for kill in kills):
            if rank == os.environ["RANK"]:
                kill_in(place, int(call))
    importlib.import_module(f"telegrad.examples.{example}").main([each for each in arguments if each not in kills])


if __name__ == "__main__":
    main()
