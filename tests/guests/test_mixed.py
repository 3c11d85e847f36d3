"""Random expressions over workers each of which computes with another library: the gradients are those of one process."""

import asyncio

import pytest
from telegrad.testing import in_process_cluster

pytest.importorskip("jax.numpy", reason="JAX is not in this environment; `make guests` makes one")
pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import jax
from telegrad.tools.dist_graphs.compare import differences, gradients_across
from telegrad.tools.dist_graphs.exact import is_exact
from telegrad.tools.dist_graphs.leaves import Leaves
from telegrad.tools.dist_graphs.libraries import MIXED, library_at
from telegrad.tools.dist_graphs.plan import make_plan
from telegrad.tools.dist_graphs.processes import MODES, _blocking

RANKS = range(4)


@pytest.fixture
def wide_numbers():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def problems_of(plan):
    with in_process_cluster(*[f"w{rank}" for rank in RANKS]) as agents, agents[0].use():
        for rank, agent in enumerate(agents):
            agent.add_part(Leaves(library_at("mixed", plan.seed + rank), mixed=True))
        return differences(plan, asyncio.run(gradients_across(plan, _blocking)))


@pytest.mark.parametrize("seed", [1, 3, 4, pytest.param(range(5, 60), marks=pytest.mark.long)])
def test_gradients_are_those_of_one_process(seed, wide_numbers):
    seeds = seed if isinstance(seed, range) else [seed]
    for plan in (make_plan(seed, len(RANKS), mode, blocking=True, library="mixed") for seed in seeds for mode in MODES):
        assert not problems_of(plan)


def test_every_third_expression_is_a_tree():
    plans = [make_plan(seed, len(RANKS), mode, blocking=True, library="mixed") for seed in range(60) for mode in MODES]
    assert all(is_exact(plan) for plan in plans if plan.seed % 3 == 0)
    assert not all(is_exact(plan) for plan in plans)
    assert {library_at("mixed", place) for place in RANKS} == {*MIXED}
