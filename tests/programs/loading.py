"""Datasets for tests/data/test_workers*.py: workers import them by name. As a script, loaders that are to end badly."""

import os
import random
import signal
import sys
import time
from collections import namedtuple

import numpy as np
import telegrad as tg
from telegrad.data import DataLoader, Dataset, IterableDataset, get_worker_info

Sample = namedtuple("Sample", "image name")


class Squares(Dataset):
    """Small samples of every kind, and where they were made."""

    def __init__(self, count, width=3):
        self.count = count
        self.width = width

    def __getitem__(self, index):
        return {
            "image": tg.full((self.width,), float(index * index)),
            "array": np.arange(index, index + 2),
            "number": index,
            "named": Sample(np.float32(index), f"sample {index}"),
            "empty": tg.zeros(0, 2),
        }

    def __len__(self):
        return self.count


class Where(Squares):
    """Samples that tell which process made them."""

    def __getitem__(self, index):
        info = get_worker_info()
        return index, os.getpid(), -1 if info is None else info.id, -1 if info is None else info.num_workers


class Dice(Squares):
    """Random numbers of every source."""

    def __getitem__(self, index):
        return float(tg.rand(1).item()), random.random(), float(np.random.random())


class Stream(IterableDataset):
    """0, 1, 2, ..., of which each worker takes its share."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.count, step))


class OddError(Exception):
    """Its pickle cannot be loaded."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Failing(Squares):
    """Fails at sample 3, in the way that ``how`` says."""

    def __init__(self, count, how, note=None):
        super().__init__(count)
        self.how = how
        self.note = note

    def __getitem__(self, index):
        if index == 3:
            self.fail()
        return index

    def fail(self):
        if self.how == "key":
            raise KeyError("no such sample")
        if self.how == "odd":
            raise OddError(1, 2)
        if self.how == "stop":
            raise StopIteration("enough")
        if self.how == "exit":
            os._exit(7)
        if self.how == "sys.exit":
            sys.exit(5)
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "hang":
            if self.note:
                self.note.send(os.getpid())
            time.sleep(600)


class Graph(Squares):
    def __getitem__(self, index):
        return tg.ones(2, requires_grad=True) * index


class Table(Dataset):
    """Rows of one table, sent as they are."""

    def __init__(self, rows, tensor=True):
        self.table = tg.arange(float(rows * 1000)).reshape(rows, 1000)
        self.views = [self.table[0], self.table[1:]]
        self.counter = tg.zeros(1).share_memory_()

    def __getitem__(self, index):
        self.counter.add_(1)
        self.views[0].add_(1)  # seen through the table, in this worker only
        assert (self.table[0, 0] == self.views[0][0]).item()
        return self.table[index]

    def __len__(self):
        return len(self.table)


def note_start(number):
    info = get_worker_info()
    info.dataset.count += 100 * (number + 1)
    info.dataset.seed = info.seed


def fail_start(number):
    raise ValueError(f"worker {number} cannot start")


class Noted(Squares):
    def __getitem__(self, index):
        return self.count, self.seed


class Slow(Squares):
    """Each sample of worker 0 waits for a file."""

    def __init__(self, count, gate):
        super().__init__(count)
        self.gate = gate

    def __getitem__(self, index):
        while get_worker_info().id == 0 and not os.path.exists(self.gate):
            time.sleep(0.005)
        return index


def main(context, how):
    """A program whose loader ends with it, or before it."""
    dataset = Failing(100, "hang" if how == "hang" else "none")
    loader = DataLoader(dataset, 2, num_workers=2, multiprocessing_context=context)
    batches = iter(loader)
    next(batches)
    print("workers", *(worker.process.pid for worker in batches._pool.workers), flush=True)
    if how == "raise":
        raise ValueError("the user's")
    if how == "end":
        return
    if how == "exit":
        sys.exit(3)
    print("waiting", flush=True)
    while how == "wait":
        time.sleep(0.02)  # a signal that comes in the moment before a system call is handled when that has ended
    for _ in batches:
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
