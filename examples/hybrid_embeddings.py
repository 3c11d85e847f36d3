"""RPC and data parallel training in one backward: word vectors on a server, and equal networks on trainers.

    telegrad run -n 3 examples/hybrid_embeddings.py      a server and two trainers
    python examples/hybrid_embeddings.py                 the same without the launcher

The server owns a table of word vectors, with sparse gradients. Each trainer guesses the topics of its paragraphs with a network
that ``DistributedDataParallel`` keeps equal on all trainers. One backward of a distributed context goes through both:
gradients of vectors go to the server, and those of the networks become means over the trainers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import telegrad as tg
from telegrad import collective as dist
from telegrad import nn
from telegrad.examples.curves import curves
from telegrad.examples.embedding_server import BATCH, SIZE, TOPICS, Paragraphs, Table
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.trainers import run_with_trainers, train_all


def train(index: int, count: int, table: tg.RRef, options: Options) -> tuple[list[float], float, list[float]]:
    """Train one of the networks.

    Args:
        index: number of this trainer.
        count: number of trainers.
        table: reference to the ``Table``.
        options: the options on the command line.

    Returns:
        The loss of each step, the accuracy on the paragraphs that are held out, and the sum of each parameter, which all
        trainers must agree on.
    """
    dist.init_process_group("rpc", rank=index, world_size=count)  # of the trainers, without the server
    data = Paragraphs()
    mine = np.flatnonzero(~data.held_out)[index::count]
    tg.manual_seed(options.seed)
    network = nn.Sequential(nn.Linear(SIZE, 32), nn.ReLU(), nn.Linear(32, TOPICS))
    model = nn.parallel.DistributedDataParallel(network)
    vectors = tg.DistributedOptimizer(tg.optim.Adagrad, table.rpc_sync().parameter_rrefs(), lr=options.lr)
    own = tg.DistributedOptimizer(tg.optim.Adam, [tg.RRef(each) for each in model.parameters()], lr=options.lr / 20)
    random, losses = np.random.default_rng([options.seed, index]), []
    for _ in range(options.steps):
        rows = random.choice(mine, BATCH)
        with tg.autograd_dist.context() as context_id:
            scores = model(table.rpc_sync().means(tg.tensor(data.words[rows])))
            loss = nn.functional.cross_entropy(scores, tg.tensor(data.topics[rows]))
            tg.autograd_dist.backward(context_id, [loss])
            vectors.step(context_id)
            own.step(context_id)
        losses.append(loss.item())
    with tg.no_grad():
        found = network(table.rpc_sync().means(tg.tensor(data.words[data.held_out]))).argmax(1)
    dist.destroy_process_group()
    sums = [float(each.detach().sum()) for each in network.parameters()]
    return losses, float(np.mean(found.numpy() == data.topics[data.held_out])), sums


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    about = "Learn word vectors on a server and equal networks on trainers."
    start(work, 3, (parse("hybrid_embeddings", about, 200, 0.2, arguments),))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the trainers only serve: the server calls them."""
    run_with_trainers(rank, world_size, learn, options, 3)


def learn(names: Sequence[str], options: Options) -> None:
    """Let all trainers train, and print and draw how well."""
    table = tg.RRef(Table(Paragraphs().vocabulary, options.seed))
    results = train_all(names, train, table, options)
    accuracy = float(np.mean([accuracy for _, accuracy, _ in results]))
    print(f"equal networks everywhere: {all(sums == results[0][2] for *_, sums in results)}")
    print(f"accuracy on held-out paragraphs: {accuracy:.1%}")
    lines = {name: losses for name, (losses, *_) in zip(names, results)}
    title = f"Word vectors on a server, equal networks on trainers: {accuracy:.0%} right"
    curves(options.out / "training.png", title, lines, "step of a trainer", "cross-entropy")


if __name__ == "__main__":
    main(sys.argv[1:])
