"""The agent of the CartPole example learns to keep the pole up, from any seed; here without workers."""

from pathlib import Path

import numpy as np
import pytest
from telegrad.examples.local_options import Options

pytest.importorskip("gymnasium", reason="the example's game is an extra: pip install gymnasium")
from telegrad.examples import cartpole
from telegrad.examples.cartpole_game import Game, Played

OBSERVERS, STEPS = 3, 150


def play_all(agent, games):
    """Play some steps of all games, with an action for each from one forward of the agent."""
    done = [Played([game._observed], [], [], []) for game in games]
    for _ in range(cartpole.PLAYED):
        agent.observed[:] = [game._observed for game in games]
        for game, each, action in zip(games, done, agent._choose_all()):
            step = game.play(1, lambda _, action=action: action)
            each.observed.append(step.observed[-1])
            each.actions.append(action)
            each.ends.append(step.ends[0])
            each.lengths.extend(step.lengths)
    return [Played(np.stack(o), np.array(a), np.array(e), lengths) for o, a, e, lengths in done]


@pytest.mark.soak
@pytest.mark.parametrize("seed", [2, 1])
def test_the_pole_stays_up_for_400_steps(seed):
    agent = cartpole.Agent(OBSERVERS, Options(STEPS, 0.01, seed, True, Path()))
    games, lengths = [Game(seed + number) for number in range(OBSERVERS)], []
    for _ in range(STEPS):
        played = play_all(agent, games)
        agent.learn(played)
        lengths += [length for each in played for length in each.lengths]
    assert np.mean(lengths[-30:]) > 400


def test_advantages_of_steps_by_hand():
    ends, expected = np.array([[False], [True]]), np.array([[1.0], [2.0], [9.0]], np.float32)
    later = 1 - 2.0  # the pole fell: what follows is of another episode
    now = 1 + cartpole.DISCOUNT * 2 - 1
    found = cartpole.advantages(ends, expected)
    np.testing.assert_allclose(found[:, 0], [now + cartpole.DISCOUNT * cartpole.TRACE * later, later], rtol=1e-6)
