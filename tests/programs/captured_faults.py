"""Steps with a call of another worker, eager and compiled, whose callee is killed or stopped, or which are interrupted.

Rank 0 prints for each scene what it saw of the eager step and of the compiled one. The ranks 1 and 2 are killed.
"""

import os
import signal
import threading
from functools import partial

import telegrad as tg
from telegrad import autograd_dist, nn, optim, rpc
from telegrad.autograd_dist.captured.parts import CapturedParts
from telegrad.rpc.calls.caller import Caller
from telegrad.rpc.extend import current_agent
from telegrad.rpc.observing.processes import look_at_process

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PATIENCE, SECONDS = 0.4, 100.0


class Layers:
    def __init__(self):
        self.net = nn.Linear(4, 4)
        for number, each in enumerate(self.net.parameters()):
            each.data = tg.linspace(-1, 1, each.numel()).reshape(each.shape) * (number + 1)

    def forward(self, x):
        return self.net(x).tanh()

    def parameters(self):
        return [tg.RRef(each) for each in self.net.parameters()]

    def forget(self):
        current_agent().part(CapturedParts)._table.clear()


class Steps:
    """Training of two layers."""

    def __init__(self, worker, compiled, lr=0.1):
        self.first = Layers()
        self.remote = rpc.remote(worker, Layers)
        parameters = self.remote.rpc_sync().parameters() + [tg.RRef(each) for each in self.first.net.parameters()]
        self.optimizer = autograd_dist.DistributedOptimizer(optim.SGD, parameters, lr=lr)
        self.step = tg.compile(self.run) if compiled else self.run
        self.compiled = compiled

    def run(self, x):
        with autograd_dist.context() as context:
            loss = self.remote.rpc_sync().forward(self.first.forward(x)).square().sum()
            autograd_dist.backward(context, [loss])
            self.optimizer.step(context)
        return loss.detach()

    def train(self, count=4):
        losses = [self.step(tg.full((2, 4), 0.25 * number)).item().hex() for number in range(count)]
        assert not self.compiled or self.replays() > 0, self.step.explain()
        return losses

    def replays(self):
        return sum(plan.replays for plan in self.step.plans()) if self.compiled else 0


def at_request(number, action, step):
    """Make a step, and do something before its request of a number, counted from 1; return the error's name and worker."""
    begin, seen = Caller.begin, []

    def beginning(self, *args):
        if threading.current_thread() is threading.main_thread():
            seen.append(1)
            if len(seen) == number:
                action()
        return begin(self, *args)

    Caller.begin = beginning
    try:
        step(tg.ones(2, 4))
    except (Exception, KeyboardInterrupt) as error:
        return f"{type(error).__name__} {getattr(error, 'worker', '')}"
    finally:
        Caller.begin = begin
    return "nothing"


def killed(compiled):
    """The callee dies after the forward, before the backward."""
    victim = f"w{1 + compiled}"
    steps = Steps(victim, compiled)
    pid = rpc.rpc_sync(victim, os.getpid)
    losses = steps.train()
    error = at_request(2, partial(os.kill, pid, signal.SIGKILL), steps.step)
    again = at_request(0, None, steps.step)
    return losses, error.replace(victim, "victim"), again.replace(victim, "victim")


def stop(pid):
    """Stop a process; it runs nothing any more when this returns."""
    os.kill(pid, signal.SIGSTOP)
    while not look_at_process(pid).stopped:
        os.sched_yield()


def stopped(compiled):
    """The callee is stopped before the forward, until the call has timed out; then it goes on."""
    steps, pid = Steps("w3", compiled), rpc.rpc_sync("w3", os.getpid)
    losses = steps.train()
    rpc._set_rpc_timeout(PATIENCE)
    try:
        error = at_request(1, partial(stop, pid), steps.step)
    finally:
        os.kill(pid, signal.SIGCONT)
        rpc._set_rpc_timeout(SECONDS)
    return losses, error, steps.train()


def interrupted(compiled):
    """The step is interrupted after its forward."""
    steps = Steps("w3", compiled)
    losses = steps.train()
    error = at_request(2, partial(signal.raise_signal, signal.SIGINT), steps.step)
    return losses, error, steps.train()


def run_here(number):
    return CANCELLED[number].train(3)


CANCELLED = {}


def cancelled(compiled):
    """The step runs for another caller, which cancels it; it is done to its end."""
    steps = CANCELLED[int(compiled)] = Steps("w3", compiled)
    losses = steps.train()
    future = rpc.rpc_async("w0", run_here, (int(compiled),))
    cancelled = future.cancel()
    try:
        future.wait()
        error = "nothing"
    except Exception as problem:
        error = type(problem).__name__
    return losses, cancelled, error


def forgotten(compiled):
    """The callee knows no plan any more."""
    steps = Steps("w3", compiled)
    losses = steps.train()
    steps.remote.rpc_sync().forget()
    return losses, steps.train(5)


def two_threads(compiled):
    """Two threads make steps with one callee, at once."""
    steps = Steps("w3", compiled, lr=0.0)
    losses, found = steps.train(), []
    threads = [threading.Thread(target=lambda: found.append(steps.train())) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(SECONDS)
    return losses, found


if __name__ == "__main__":
    rpc.init_rpc(f"w{RANK}", rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=SECONDS))
    if RANK == 0:
        for scene in (killed, stopped, interrupted, cancelled, forgotten, two_threads):
            print("scene", scene.__name__, repr(scene(False)), repr(scene(True)), sep="|", flush=True)
    rpc.shutdown(timeout=SECONDS)
