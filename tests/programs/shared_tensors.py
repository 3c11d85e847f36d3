"""Functions that the processes of tests/core/test_sharing.py run; they import this file by name."""

import os
import pickle

import numpy as np
import telegrad as tg
from telegrad import nn, optim


def add_one(tensor, done):
    tensor.add_(1)
    done.send((tensor.is_shared(), tensor.tolist()))


def answer_all(incoming, outgoing):
    """Change each tensor that comes, and send it back; ``None`` ends it."""
    while (tensor := incoming.get()) is not None:
        with tg.no_grad():
            tensor.mul_(10)
        outgoing.put((tensor, type(tensor).__name__, tensor.is_shared(), tensor.requires_grad))


def report_aliasing(connection):
    """Write through the first of the tensors that come, and tell what the others then hold."""
    whole, *views = connection.recv()
    whole.fill_(7)
    connection.send([view.tolist() for view in views])
    connection.recv()


def send_and_end(connection, how):
    """Send a shared tensor, and end before anybody has received it."""
    connection.send_bytes(pickled(tg.ones(3).share_memory_()))
    connection.recv()
    os._exit(how)


def pickled(tensor):
    """As multiprocessing's pipes and queues pickle it."""
    from multiprocessing.reduction import ForkingPickler

    return bytes(ForkingPickler.dumps(tensor))


def make_many(connection, count):
    """Send tensors that nobody here keeps."""
    for number in range(count):
        connection.send(tg.full((1000,), number).share_memory_())
    connection.recv()


def train(model, seed, steps):
    """Hogwild: steps on a model that other processes change too."""
    data = np.random.default_rng(seed)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        inputs = tg.tensor(data.standard_normal((16, 3)), dtype=tg.float32)
        targets = inputs @ tg.tensor([[1.0], [-2.0], [0.5]]) + 3
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def hold_forever(connection, tensor):
    tensor.add_(1)
    connection.send(os.getpid())
    connection.recv()


def copies(tensor):
    return pickle.loads(pickle.dumps(tensor))
