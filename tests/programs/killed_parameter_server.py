"""Example of the parameter server, in which the server and a trainer kill themselves once, in the middle of a step."""

import itertools
import os
import signal

import telegrad as tg
from telegrad.examples import parameter_server, ps_checkpoint

KILLED_AT = {"0": 101, "1": 37}  # step, by rank


def killing(function, step):
    """Return the function; its call of that number kills the process."""
    calls = itertools.count(1)

    def counted(*args, **kwargs):
        if next(calls) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    return counted


def main():
    """Run one worker."""
    rank = os.environ["RANK"]
    if os.environ["TELEGRAD_RESTART_COUNT"] == "0" and rank in KILLED_AT:
        tg.optim.SGD.step = killing(tg.optim.SGD.step, KILLED_AT[rank])
        ps_checkpoint.gradients = killing(ps_checkpoint.gradients, KILLED_AT[rank])
    parameter_server.main()


if __name__ == "__main__":
    main()
