"""Asynchronous advantage actor-critic (Mnih et al. 2016): players learn CartPole with networks that two other workers own.

    telegrad run -n 4 examples/actor_critic.py   a critic, an actor and two players
    python examples/actor_critic.py              the same without the launcher
    telegrad run -n 4 --restart one examples/actor_critic.py --resume     goes on, whichever worker dies

The actor says how good each action is; the critic expects how long the pole will stay up. A player copies the actor, plays some
steps with the copy, and then learns from them: one context holds the forward of both networks, each on its worker, the
loss here, and the backward through all three. Players do not wait for one another. Needs gymnasium, as ``cartpole.py`` does,
where one worker chooses the actions of all players together and learns alone.

Both networks have checkpoints: if the worker of one dies, all go on from these. A player that dies plays anew; what it has
taught the networks stays there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import telegrad as tg
from numpy.typing import NDArray
from telegrad.examples.cartpole_game import ACTIONS, OBSERVED, Game, returns, show
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.tidy import show_all_tidy
from telegrad.examples.trainers import AGAIN, Owner, train_all

HIDDEN = 64
PLAYED = 64  # steps between two of the optimizer
SAVE_EVERY = 20  # steps of the first player's optimizer between two checkpoints of the networks


def network(outputs: int) -> tg.nn.Sequential:
    """Return a network from observations (N, 4) to (N, outputs)."""
    return tg.nn.Sequential(tg.nn.Linear(OBSERVED, HIDDEN), tg.nn.Tanh(), tg.nn.Linear(HIDDEN, outputs))


class ClippedAdam(tg.optim.Adam):
    """Adam for gradients whose norm is cut to 1, on each worker."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step."""
        tg.nn.utils.clip_grad_norm_([each for group in self.param_groups for each in group["params"]], 1.0)
        return super().step(closure)


class NetworkOwner(Owner):
    """Worker that owns a network.

    Args:
        outputs: of the network.
        seed: of its parameters.
    """

    def __init__(self, outputs: int, seed: int) -> None:
        tg.manual_seed(seed)
        self.module = network(outputs)

    def forward(self, observed: tg.Tensor) -> tg.Tensor:
        """Return what the network says of observations (N, 4)."""
        result: tg.Tensor = self.module(observed)
        return result

    def state(self) -> dict[str, tg.Tensor]:
        """Return the parameters as they are."""
        return self.module.state_dict()


class Learner:
    """Two networks that other workers own, and what a player teaches them.

    Args:
        actor: reference to the owner of the network that chooses actions.
        critic: reference to the owner of the network that expects returns.
        rate: learning rate.
    """

    def __init__(self, actor: tg.RRef, critic: tg.RRef, rate: float) -> None:
        self.actor, self.critic = actor, critic
        parameters = actor.rpc_sync().parameter_rrefs() + critic.rpc_sync().parameter_rrefs()
        self.optimizer = tg.DistributedOptimizer(ClippedAdam, parameters, lr=rate)

    def learn(self, observed: tg.Tensor, actions: tg.Tensor, earned: tg.Tensor, weight: tg.Tensor) -> tg.Tensor:
        """Learn from what was played, and return the loss. ``--captured`` compiles this.

        Args:
            observed: before each step and after the last one, (T + 1, 4).
            actions: what was done, (T,).
            earned: discounted rewards from each step on, (T,).
            weight: of what is expected after the last step, in the return of each step, (T,).
        """
        with tg.autograd_dist.context() as context_id:
            scores = self.actor.rpc_async().forward(observed[:-1])  # both forwards run at the same time
            expected = self.critic.rpc_sync().forward(observed).squeeze(1)
            advantage = earned + weight * expected[-1].detach() - expected[:-1]
            surprise = tg.nn.functional.cross_entropy(scores.wait(), actions, reduction="none")
            loss = (surprise * advantage.detach()).mean() + 0.5 * (advantage / 10).square().mean()
            tg.autograd_dist.backward(context_id, [loss])
            self.optimizer.step(context_id)
        return loss.detach()


class Player:
    """Worker that plays, and learns from what it played.

    Args:
        actor, critic: see ``Learner``.
        number: of this player.
        options: the options on the command line.
    """

    def __init__(self, actor: tg.RRef, critic: tg.RRef, number: int, options: Options) -> None:
        tg.manual_seed(options.seed + 2 + number)
        self.actor, self.copy = actor, network(ACTIONS)
        self.game = Game(options.seed + number)
        learner = Learner(actor, critic, options.lr)
        self.learn = tg.compile(learner.learn) if options.captured else learner.learn

    def choose(self, observed: NDArray[np.float32]) -> int:
        """Return a random action by the chances that the copy of the actor gives."""
        with tg.no_grad():
            return int(tg.distributions.Categorical(logits=self.copy(tg.tensor(observed))).sample())

    def step(self) -> list[int]:
        """Play some steps and learn from them; return the lengths of the episodes that ended."""
        self.copy.load_state_dict(self.actor.rpc_sync().state())
        played = self.game.play(PLAYED, self.choose)
        earned = returns(played.ends, 0.0)
        weight = returns(played.ends, 1.0) - earned
        self.learn(*map(tg.tensor, (played.observed, played.actions, earned, weight)))
        return played.lengths


@tg.rpc.idempotent
def train(number: int, players: int, actor: tg.RRef, critic: tg.RRef, options: Options) -> list[int]:
    """Play and learn in one player, and return the lengths of its episodes.

    Args:
        number: of this player.
        players: number of all players.
        actor: see ``Player``.
        critic: see there.
        options: the options on the command line.
    """
    player, lengths = Player(actor, critic, number, options), list[int]()
    for step in range(1, options.steps + 1):
        lengths += player.step()
        if number == 0 and step % SAVE_EVERY == 0:
            for owner in (actor, critic):
                owner.rpc_sync().save()
    return lengths


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    options = parse(
        "actor_critic",
        "Learn to balance a pole, with networks on two workers.",
        200,
        0.01,
        arguments,
        resumes=True,
        captures=True,
    )
    start(work, 4, (options,))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the others only serve: the critic's calls them."""
    if world_size < 3:
        raise SystemExit("an actor and players are needed: telegrad run -n 4 ...")
    players = [f"player{number}" for number in range(world_size - 2)]
    tg.rpc.init_rpc(("critic", "actor", *players)[rank], rank=rank, world_size=world_size)
    if rank == 0:
        learn(players, options)
        show_all_tidy(["actor", *players], options.quiet)
    tg.rpc.shutdown()


def learn(players: Sequence[str], options: Options) -> None:
    """Let all players play and learn, and print and draw how well."""
    actor = tg.rpc.remote("actor", NetworkOwner, (ACTIONS, options.seed))
    critic = tg.RRef(NetworkOwner(1, options.seed + 1))
    for name, owner in (("actor", actor), ("critic", critic)):
        owner.rpc_sync().save_in(options.out / "checkpoints" / name, options.resume)
    lengths = dict(zip(players, train_all(players, train, actor, critic, options, retry=AGAIN)))
    show(options.out / "training.png", "Actor-critic on CartPole", lengths)


if __name__ == "__main__":
    main(sys.argv[1:])
