"""Batched reinforcement learning: observers play CartPole, and one agent chooses the actions of all of them together.

    telegrad run -n 4 examples/cartpole.py       an agent and three observers
    python examples/cartpole.py                  the same without the launcher

Every observer asks the agent for an action in each step. The agent's function is marked with ``async_execution``: a request
holds no thread until the observations of all observers are there; then one forward of the network answers all. After some steps
the agent learns from what they played, by proximal policy optimization (J. Schulman et al., 2017): some steps of the optimizer
that together change the chance of an action only a little.
Needs gymnasium: ``pip install gymnasium``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence

import numpy as np
import telegrad as tg
from numpy.typing import NDArray
from telegrad.examples.cartpole_game import ACTIONS, OBSERVED, Game, Played, show
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.tidy import show_all_tidy

HIDDEN = 64
SCALE = (0.5, 0.5, 5.0, 0.5)  # makes position, speed, angle and turning of the pole about equally large
PLAYED = 64  # steps of each observer before the agent learns
EPOCHS = 10  # steps of the optimizer then
CLIP = 0.2  # how much they may change the chance of an action, as a share of it
DISCOUNT, TRACE = 0.99, 0.95  # weight of the next step's reward, and of its advantage


class Network(tg.nn.Module):
    """Actor and critic: observations (..., 4) to scores of actions (..., 2) and expected returns (...)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = tg.nn.Sequential(tg.nn.Linear(OBSERVED, HIDDEN), tg.nn.Tanh())
        self.actor, self.critic = tg.nn.Linear(HIDDEN, ACTIONS), tg.nn.Linear(HIDDEN, 1)

    def forward(self, observed: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
        """Return scores and expectations."""
        hidden = self.body(observed * tg.tensor(SCALE))
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


class Agent:
    """Agent that chooses actions for all observers and learns.

    Args:
        observers: how many there are.
        options: the options on the command line.
    """

    def __init__(self, observers: int, options: Options) -> None:
        tg.manual_seed(options.seed)
        self.network = Network()
        self.optimizer = tg.optim.Adam(self.network.parameters(), lr=options.lr)
        self.schedule = tg.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.01, options.steps)
        self.observed = np.zeros((observers, OBSERVED), np.float32)
        self.missing, self.chosen = observers, tg.futures.Future[list[int]]()
        self.lock = threading.Lock()

    @tg.rpc.functions.async_execution
    def choose(self, observer: int, observation: NDArray[np.float32]) -> tg.futures.Future[int]:
        """Return the future of an observer's next action, which comes with those of the others."""
        with self.lock:
            self.observed[observer] = observation
            mine = self.chosen.then(lambda chosen: chosen.value()[observer])
            self.missing -= 1
            complete, last = self.chosen, not self.missing
            if last:
                self.missing, self.chosen = len(self.observed), tg.futures.Future()
        if last:
            complete.set_result(self._choose_all())
        return mine

    def _choose_all(self) -> list[int]:
        with tg.no_grad():
            scores, _ = self.network(tg.tensor(self.observed))
            return [int(action) for action in tg.distributions.Categorical(logits=scores).sample()]

    def learn(self, played: Sequence[Played]) -> None:
        """Learn from what all observers played since the last time."""
        observed = tg.tensor(np.stack([each.observed for each in played], 1))
        actions = tg.tensor(np.stack([each.actions for each in played], 1))
        with tg.no_grad():
            scores, expected = self.network(observed)
            before = chances(scores[:-1], actions)
        gained = advantages(np.stack([each.ends for each in played], 1), expected.numpy())
        aims, weights = tg.tensor(gained) + expected[:-1], tg.tensor((gained - gained.mean()) / (gained.std() + 1e-8))
        for _ in range(EPOCHS):
            scores, expected = self.network(observed[:-1])
            ratio = (chances(scores, actions) - before).exp()
            gain = tg.minimum(ratio * weights, ratio.clamp(1 - CLIP, 1 + CLIP) * weights).mean()
            loss = 0.5 * ((aims - expected) / 10).square().mean() - gain
            self.optimizer.zero_grad()
            loss.backward()
            tg.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step()
        self.schedule.step()


def chances(scores: tg.Tensor, actions: tg.Tensor) -> tg.Tensor:
    """Return the logarithms of the chances of actions (T, N), given the scores of all actions (T, N, 2)."""
    return tg.distributions.Categorical(logits=scores).log_prob(actions)


def advantages(ends: NDArray[np.bool_], expected: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return by how much each step was better than expected (J. Schulman et al., 2015, equation 16).

    Args:
        ends: whether the pole fell there, (T, N).
        expected: returns, before each step and after the last one, (T + 1, N).
    """
    found, total = np.empty(ends.shape, np.float32), np.zeros(ends.shape[1], np.float32)
    for step in reversed(range(len(ends))):
        surprise = 1.0 + DISCOUNT * expected[step + 1] * ~ends[step] - expected[step]
        found[step] = total = surprise + DISCOUNT * TRACE * total * ~ends[step]
    return found


class Observer:
    """Worker that plays.

    Args:
        agent: reference to the agent.
        number: of this observer.
        seed: of its game.
    """

    def __init__(self, agent: tg.RRef, number: int, seed: int) -> None:
        self.agent, self.number = agent, number
        self.game = Game(seed + number)

    def play(self) -> Played:
        """Play some steps, over as many episodes as they take."""
        return self.game.play(PLAYED, lambda observed: self.agent.rpc_sync().choose(self.number, observed))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    start(work, 4, (parse("cartpole", "Learn to balance a pole.", 150, 0.01, arguments),))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the observers only serve: the agent calls them."""
    if world_size < 2:
        raise SystemExit("observers are needed: telegrad run -n 4 ...")
    names = [f"observer{number}" for number in range(world_size - 1)]
    tg.rpc.init_rpc(("agent", *names)[rank], rank=rank, world_size=world_size)
    if rank == 0:
        learn(names, options)
        show_all_tidy(names, options.quiet)
    tg.rpc.shutdown()


def learn(names: Sequence[str], options: Options) -> None:
    """Let all observers play and the agent learn, and print and draw how well."""
    agent = Agent(len(names), options)
    handle = tg.RRef(agent)
    observers = [tg.rpc.remote(name, Observer, (handle, number, options.seed)) for number, name in enumerate(names)]
    lengths: list[int] = []
    for _ in range(options.steps):
        played = tg.futures.wait_all([observer.rpc_async().play() for observer in observers])
        agent.learn(played)
        lengths += [length for each in played for length in each.lengths]
    show(options.out / "training.png", f"CartPole, {len(names)} observers", {"episodes": lengths})


if __name__ == "__main__":
    main(sys.argv[1:])
