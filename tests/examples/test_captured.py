"""Examples with ``--captured``: their steps have the bits of eager ones, and are replayed; or they say why not."""

import numpy as np
import telegrad as tg
from telegrad.examples import digits, ps_options
from telegrad.examples.ps_server import ParameterServer
from telegrad.examples.ps_trainer import Trainer
from telegrad.testing import cluster

STEPS = 6


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
