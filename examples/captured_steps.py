"""Steps of examples that ``--captured`` compiles, for the benchmark of such steps: the same step as it is, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import telegrad as tg
from telegrad import nn
from telegrad.examples import digits, pipeline_cnn, ps_options
from telegrad.examples.ps_server import ParameterServer
from telegrad.examples.ps_trainer import Trainer
from telegrad.pipelining import Pipeline

Step: TypeAlias = "tuple[Callable[..., Any], tuple[Any, ...]]"  # and its arguments
RATE = 0.003
OBSERVED = 4  # numbers of an observation of CartPole


def parameter_server(captured: bool) -> Step:
    """Return a step of the parameter server's trainer (``--mode async``), with a batch."""
    options, _ = ps_options.parse(["--mode", "async", "--quiet", "--trainers", "1"] + ["--captured"] * captured)
    trainer = Trainer(tg.rpc.remote("worker1", ParameterServer, (options,)), options, 0)
    optimizer = trainer._distributed_optimizer(options.rate(0))
    data = digits.load()
    levels = tg.tensor(digits.to_levels(data.train_x[: options.batch_size]))
    return trainer.async_step, (levels, tg.tensor(data.train_y[: options.batch_size]), optimizer)


def pipeline(captured: bool) -> Step:
    """Return a step of the pipeline of two stages (``1F1B``), with a batch."""
    made = zip(("worker1", "worker2"), (pipeline_cnn.front, pipeline_cnn.back))
    stages = [tg.RemoteModule(worker, make, (0, captured)) for worker, make in made]
    pipe = Pipeline(stages, nn.functional.cross_entropy, pipeline_cnn.MICROBATCHES, "1F1B")
    optimizer = pipe.optimizer(tg.optim.Adam, lr=RATE)

    def step(images: Any, labels: Any) -> None:
        pipe.step(images, labels)
        optimizer.step()

    data = digits.load()
    images = data.train_x[: pipeline_cnn.BATCH, None]
    return step, (tg.tensor(images), tg.tensor(data.train_y[: pipeline_cnn.BATCH]))


def actor_critic(captured: bool) -> Step:
    """Return what a player learns from some steps of a game, and such steps."""
    from telegrad.examples.actor_critic import PLAYED, Learner, NetworkOwner  # here: it needs gymnasium

    actor, critic = (tg.rpc.remote(f"worker{rank}", NetworkOwner, (3 - rank, rank)) for rank in (1, 2))
    learn = Learner(actor, critic, RATE).learn
    random = np.random.default_rng(0)
    observed, earned = random.normal(size=(PLAYED + 1, OBSERVED)), random.normal(size=(2, PLAYED))
    actions = tg.tensor(random.integers(0, 2, PLAYED))
    given = tg.tensor(observed).float(), actions, *tg.tensor(earned).float()
    return tg.compile(learn) if captured else learn, given


EXAMPLES: dict[str, tuple[int, Callable[[bool], Step]]] = {
    "example parameter_server": (2, parameter_server),
    "example pipeline_cnn": (3, pipeline),
    "example actor_critic": (3, actor_critic),
}
"""By name: how many workers it has, and what makes its step."""
