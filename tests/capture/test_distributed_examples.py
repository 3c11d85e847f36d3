"""Training steps of the examples with workers, compiled: their networks in one process, and a step that calls other workers."""

import numpy as np
import pytest
import telegrad as tg
from helpers.compiled import train
from telegrad import nn
from telegrad.examples import (
    actor_critic,
    cartpole,
    distributed_rnn,
    embedding_server,
    hogwild,
    local_sgd,
    pipeline_cnn,
    ps_model,
    split_learning,
)
from telegrad.examples.local_options import Options
from telegrad.examples.text_training import bits
from telegrad.testing import cluster


class Chain(nn.Sequential):
    """Parts of a model that lie on different workers, one after the other."""


class Halves(nn.Module):
    """Layers of both holders of split learning, and the learner's."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([split_learning.Holder(half, 0).module for half in (0, 1)])
        self.head = nn.Linear(2 * split_learning.FEATURES, 10)

    def forward(self, images):
        parts = [part(each) for part, each in zip(self.parts, images.split(split_learning.HALF, 1))]
        return self.head(tg.cat(parts, dim=1))


class Tagger(nn.Module):
    """Parts of the distributed RNN."""

    def __init__(self):
        super().__init__()
        self.table = distributed_rnn.Part(nn.Embedding, (9, 4), 0).module
        self.lstm = nn.LSTM(4, 5, batch_first=True)
        self.decoder = distributed_rnn.Part(nn.Linear, (5, 9), 1).module

    def forward(self, text):
        return self.decoder(self.lstm(self.table(text))[0])


def played(scores, expected, actions):
    """Return the loss of an actor and a critic."""
    chances = tg.distributions.Categorical(logits=scores).log_prob(actions)
    advantage = 1.5 - expected
    return -(chances * advantage.detach()).mean() + 0.5 * (advantage / 10).square().mean()


def clipped(result, actions):
    """Return a loss as that of the cart pole's agent."""
    scores, expected = result
    ratio = (cartpole.chances(scores, actions) + 0.7).exp()
    return 0.5 * expected.square().mean() - tg.minimum(ratio, ratio.clamp(0.8, 1.2) * 2).mean()


class Both(nn.Module):
    """Actor and critic on two workers."""

    def __init__(self):
        super().__init__()
        self.actor, self.critic = actor_critic.NetworkOwner(2, 0).module, actor_critic.NetworkOwner(1, 1).module

    def forward(self, observed):
        return self.actor(observed), self.critic(observed).squeeze(1)


def _images():
    return tg.randn(4, 64)


def _digits():
    return tg.randint(0, 10, (4,))


STEPS = {
    "hogwild": (lambda: hogwild.Server(0).module, _images, _digits, nn.functional.cross_entropy),
    "local_sgd": (lambda: local_sgd.network(0), _images, _digits, nn.functional.cross_entropy),
    "parameter_server": (
        lambda: ps_model.Model(ps_model.Front(), ps_model.Head()),
        lambda: tg.randint(0, ps_model.LEVELS, (4, 64)),
        _digits,
        ps_model.loss_of,
    ),
    "pipeline_cnn": (
        lambda: Chain(pipeline_cnn.front(0), pipeline_cnn.back(0)),
        lambda: tg.randn(4, 1, 8, 8),
        _digits,
        nn.functional.cross_entropy,
    ),
    "split_learning": (Halves, _images, _digits, nn.functional.cross_entropy),
    "distributed_rnn": (Tagger, lambda: tg.randint(0, 9, (2, 6)), lambda: tg.randint(0, 9, (2, 6)), bits),
    "actor_critic": (
        Both,
        lambda: tg.randn(5, 4),
        lambda: tg.randint(0, 2, (5,)),
        lambda result, actions: played(*result, actions),
    ),
    "cartpole": (cartpole.Network, lambda: tg.randn(3, 5, 4), lambda: tg.randint(0, 2, (3, 5)), clipped),
    "embedding_server": (
        lambda: Chain(embedding_server.Table(20, 0).module, nn.Linear(embedding_server.SIZE, 10)),
        lambda: tg.randint(0, 20, (4, 6)),
        _digits,
        nn.functional.cross_entropy,
    ),
}
# Distributions check their arguments, and a bag of embeddings its indices.
EAGER = dict.fromkeys(["actor_critic", "cartpole", "embedding_server"], "numpy() reads elements")


def run(name, compiled):
    """Return the bits that steps leave, and their function."""
    make, inputs, targets, loss = STEPS[name]
    tg.manual_seed(0)
    model = make()
    optimizer = tg.optim.Adagrad(model.parameters(), lr=0.01)
    return train(model, optimizer, loss, (inputs, targets), compiled)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_networks_of_distributed_examples_have_the_bits_of_eager_steps(name):
    eager, _ = run(name, False)
    found, compiled = run(name, True)
    assert eager == found
    if name in EAGER:
        assert EAGER[name] in compiled.explain()
    else:
        assert sum(plan.replays for plan in compiled.plans()) == 3, compiled.explain()


def test_a_step_that_calls_other_workers_runs_eagerly_with_its_reason(tmp_path):
    losses = []
    for compiled in (False, True):
        with cluster(["learner", "upper", "lower"]):
            holders = []
            for half, name in enumerate(("upper", "lower")):
                holders.append(tg.rpc.remote(name, split_learning.Holder, (half, 0)))
                holders[-1].rpc_sync().features(tg.tensor([0]))  # it exists: the next draws from the same generator
            learner = split_learning.Learner(holders, Options(3, 0.01, 0, True, tmp_path))
            if compiled:
                with pytest.warns(UserWarning, match="runs eagerly in part: a NumPy array"):
                    step = tg.compile(learner.step)
                    losses.append([step() for _ in range(3)])
            else:
                losses.append([learner.step() for _ in range(3)])
    assert losses[0] == losses[1] and np.isfinite(losses[0]).all()
