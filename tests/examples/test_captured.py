"""Examples with ``--captured``: their steps have the bits of eager ones, and are replayed; or they say why not."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import telegrad as tg
from telegrad.examples import digits, pipeline_cnn, ps_options
from telegrad.examples.ps_server import ParameterServer
from telegrad.examples.ps_trainer import Trainer
from telegrad.testing import cluster

STEPS = 6
ONE_AT_A_TIME = threading.Lock()  # all workers share one generator here
STAGES = {"stage0": pipeline_cnn.front, "stage1": pipeline_cnn.back}
made = []


def serve(options):
    return tg.RRef(ParameterServer(options))


def parameter_server(captured):
    """Return what steps of a trainer return, the parameters, and the compiled step."""
    options, _ = ps_options.parse(["--mode", "async", "--quiet", "--trainers", "1"] + ["--captured"] * captured)
    with cluster(["trainer0", "server"]):
        trainer = Trainer(tg.rpc.rpc_sync("server", serve, (options,)), options, 0)
        optimizer = trainer._distributed_optimizer(options.rate(0))
        data, random, found = digits.load(), np.random.default_rng(0), []
        for _ in range(STEPS):
            rows = random.integers(0, len(data.train_y), options.batch_size)
            levels = tg.tensor(digits.to_levels(data.train_x[rows]))
            found.append(trainer.async_step(levels, tg.tensor(data.train_y[rows]), optimizer))
        found += [each.numpy().tobytes() for each in trainer.head_state().values()]
        return found, trainer.compiled


def test_the_parameter_server():
    expected, _ = parameter_server(False)
    found, step = parameter_server(True)
    assert found == expected
    assert sum(plan.replays for plan in step.plans()) == STEPS - 2, step.explain()


def actor_critic(captured):
    """Return the lengths of episodes that a player played, the networks that it taught, and its step."""
    from telegrad.examples.actor_critic import NetworkOwner, Player

    with cluster(["player0", "actor", "critic"]):
        owners = []
        for seed, name in enumerate(("actor", "critic")):
            owners.append(tg.rpc.remote(name, NetworkOwner, (2 - seed, seed)))
            owners[-1].rpc_sync().state()  # made before the next
        player = Player(*owners, 0, SimpleNamespace(seed=0, lr=0.01, captured=captured))
        found = [player.step() for _ in range(STEPS)]
        states = [owner.rpc_sync().state().values() for owner in owners]
        return found + [each.numpy().tobytes() for state in states for each in state], player.learn


def test_the_actor_and_the_critic():
    pytest.importorskip("gymnasium")
    expected, _ = actor_critic(False)
    found, learn = actor_critic(True)
    assert found == expected
    assert sum(plan.replays for plan in learn.plans()) == STEPS - 2, learn.explain()


def make_stage(seed, captured):
    with ONE_AT_A_TIME:
        made.append(STAGES[tg.rpc.get_worker_info().name](seed, captured))
        return made[-1]


@pytest.mark.parametrize("schedule", pipeline_cnn.SCHEDULES)
def test_the_pipeline(schedule, monkeypatch):
    losses = []
    monkeypatch.setattr(pipeline_cnn, "front", make_stage)
    monkeypatch.setattr(pipeline_cnn, "back", make_stage)
    for captured in (False, True):
        made.clear()
        with cluster(["driver", *STAGES]):
            options = SimpleNamespace(seed=0, lr=0.003, steps=3, captured=captured)
            losses.append(pipeline_cnn.train(schedule, [*STAGES], options)[1])
    assert losses[0] == losses[1]
    replays = [sum(plan.replays for plan in stage.forward.plans()) for stage in made]
    assert replays == [3 * pipeline_cnn.MICROBATCHES - 2] * 2
