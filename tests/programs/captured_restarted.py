"""Compiled steps with a worker that is killed between two replays, and started again by the launcher.

Rank 0 prints how many steps were replayed before and after, and whether all losses are those of one process.
"""

import os
import signal
import time

import telegrad as tg
from telegrad import autograd_dist, nn, optim, rpc
from telegrad.base.errors import RpcError

SECONDS = 60.0
WEIGHT = tg.linspace(-1, 1, 16).reshape(4, 4)


def far(x):
    return (x @ WEIGHT).tanh()


class Steps:
    def __init__(self):
        self.net, self.same = nn.Linear(4, 4), nn.Linear(4, 4)
        self.same.load_state_dict(self.net.state_dict())
        parameters = [tg.RRef(each) for each in self.net.parameters()]
        self.optimizer = autograd_dist.DistributedOptimizer(optim.SGD, parameters, lr=0.1)
        self.same_optimizer = optim.SGD(self.same.parameters(), lr=0.1)
        self.step = tg.compile(self.run)

    def run(self, x):
        with autograd_dist.context() as context:
            loss = rpc.rpc_sync("worker1", far, (self.net(x),)).square().sum()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def in_one_process(self, x):
        self.same_optimizer.zero_grad()
        loss = far(self.same(x)).square().sum()
        loss.backward()
        self.same_optimizer.step()
        return loss.item()

    def train(self):
        """Return how many of some steps were replayed, and whether all are those of one process."""
        same = True
        for number in range(5):
            x = tg.full((2, 4), 0.25 * number)
            same &= self.step(x).item() == self.in_one_process(x)
        return sum(plan.replays for plan in self.step.plans()), same


def another(pid):
    """Wait for the worker that takes the place of a killed one."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        try:
            if rpc.rpc_sync("worker1", os.getpid) != pid:
                return
        except RpcError:
            time.sleep(0.02)
    raise TimeoutError


if __name__ == "__main__":
    rpc.init_rpc()
    if os.environ["RANK"] == "0":
        steps, pid = Steps(), rpc.rpc_sync("worker1", os.getpid)
        print("before", *steps.train(), flush=True)
        os.kill(pid, signal.SIGKILL)
        another(pid)
        print("after", *steps.train(), flush=True)
        del steps
    rpc.shutdown()
