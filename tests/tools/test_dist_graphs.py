"""Random expressions split over workers: the check passes, replays, and finds gradients that are wrong."""

import pytest
from telegrad.autograd_dist.graph import ContextGraph
from telegrad.autograd_dist.local_optimizer import LocalOptimizer
from telegrad.autograd_dist.local_pass import LocalPass, PassKind
from telegrad.capture.extend import Leaving
from telegrad.testing import in_process_cluster
from telegrad.tools import repeated
from telegrad.tools.dist_graphs import __main__ as command
from telegrad.tools.dist_graphs import processes, simulated
from telegrad.tools.dist_graphs.captured.program import COMMON_WAYS, OTHER_WAYS, make_program
from telegrad.tools.dist_graphs.captured.run import run_steps
from telegrad.tools.dist_graphs.compare import differences, gradients_in_one_process
from telegrad.tools.dist_graphs.operations import ALL
from telegrad.tools.dist_graphs.plan import (
    BLOCKING_MESH_WAYS,
    BLOCKING_WAYS,
    MESH_WAYS,
    PASSED,
    SMART_WAYS,
    WAYS,
    make_plan,
)
from telegrad.tools.dist_graphs.trainings.models import ACROSS
from telegrad.tools.dist_graphs.trainings.program import (
    DENSE_OPTIMIZERS,
    MESH_CALLS,
    ONE_CALLS,
    SPARSE_OPTIMIZERS,
    make_training,
)
from telegrad.tools.dist_graphs.trainings.run import Trainings, train

REPLAYED = 3  # some seeds of compiled steps, most of which are replayed


@pytest.mark.parametrize("mode", ["smart", "fast"])
def test_plans_replay_and_use_everything(mode):
    plans = [make_plan(seed, 4, mode, blocking=True) for seed in range(300)]
    assert plans == [make_plan(seed, 4, mode, blocking=True) for seed in range(300)]
    steps = [step for plan in plans for step in plan.steps]
    blocking = {*BLOCKING_WAYS, *BLOCKING_MESH_WAYS}
    assert {step.way for step in steps} == {*WAYS, *MESH_WAYS, *blocking, *(SMART_WAYS if mode == "smart" else ())}
    assert {step.passed for step in steps} == {*PASSED}
    assert {step.operation for step in steps} == ALL.keys() - ({"gate"} if mode == "fast" else set())
    assert not {step.way for step in make_plan(1, 4, mode, blocking=False).steps} & blocking


def test_differences_are_told():
    plan = make_plan(3, 2, "smart", blocking=True)
    found = gradients_in_one_process(plan)
    assert not differences(plan, found)
    number, (array, sparse) = next((number, each) for number, each in found.items() if each is not None)
    for wrong in (None, (array + 1e-6, sparse), (array, not sparse)):
        (problem,) = differences(plan, {**found, number: wrong})
        assert f"leaf {number} has the gradient" in problem


@pytest.mark.processes
@pytest.mark.slow
def test_on_processes(capsys):
    assert command.main(["--seeds", "10", "--workers", "3", "--on", "processes", "--lane", "tcp"]) == 0
    assert "20 expressions on 3 processes over tcp, 0 of them bit by bit" in capsys.readouterr().out


@pytest.mark.slow
def test_in_the_simulator(capsys):
    assert command.main(["--seeds", "40", "--on", "simulator"]) == 0
    assert "in 4 runs of the simulator" in capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.processes
def test_many_on_processes_and_in_the_simulator():
    count, problems = processes.check(range(1150, 1250), 4)
    assert count == 200 and not problems
    assert not [problems for _, _, problems in repeated.check(simulated.Graphs, range(100, 115), 4, 3000) if problems]


def forgets_gradients(monkeypatch):
    accumulate = ContextGraph.accumulate
    monkeypatch.setattr(
        ContextGraph, "accumulate", lambda self, leaf, gradient: accumulate(self, leaf, gradient * (gradient > -1))
    )


def says_that_all_is_unused(monkeypatch):
    apply = LocalPass._apply

    def confused(self, entry):
        apply(self, (PassKind.UNUSED, entry[1], ()) if entry[0] == PassKind.FED and entry[1] % 2 else entry)

    monkeypatch.setattr(LocalPass, "_apply", confused)


def says_nothing_of_what_is_unused(monkeypatch):
    monkeypatch.setattr(LocalPass, "_tell_unused", lambda self, message_id, sender: None)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", [forgets_gradients, says_that_all_is_unused, says_nothing_of_what_is_unused])
def test_mistakes_are_found(monkeypatch, mutation):
    mutation(monkeypatch)
    assert any(problems for _, _, problems in repeated.check(simulated.Graphs, range(6), 4, 3000))


# -- trainings with an optimizer


@pytest.fixture
def four_workers():
    with in_process_cluster("w0", "w1", "w2", "w3") as agents, agents[0].use():
        yield agents


def test_trainings_give_the_parameters_of_one_process(four_workers):
    plans = [make_training(seed, 4) for seed in range(40)]
    assert plans == [make_training(seed, 4) for seed in range(40)]
    assert {way for plan in plans for way, _ in plan.calls} == {*MESH_CALLS, *ONE_CALLS} == ACROSS.keys()
    assert {plan.optimizer for plan in plans} == {each for each, _ in (*DENSE_OPTIMIZERS, *SPARSE_OPTIMIZERS)}
    assert [train(seed, 4) for seed in range(12)] == [[]] * 12


def test_trainings_survive_every_kind_of_fault():
    ((_, complete, problems),) = repeated.check(Trainings, range(1, 2), 4, 2000)
    assert complete and not problems


def test_a_step_that_leaves_a_parameter_out_is_found(four_workers, monkeypatch):
    step = LocalOptimizer._step
    monkeypatch.setattr(LocalOptimizer, "_step", lambda self, gradients: step(self, [None, *gradients[1:]]))
    assert "the parameter of model 0 is" in train(2, 4)[0]


@pytest.mark.soak
@pytest.mark.processes
def test_many_trainings_on_processes():
    assert command.main(["--trainings", "--seeds", "100"]) == 0


# -- compiled steps


def captured_steps(seeds):
    with in_process_cluster("w0", "w1", "w2", "w3") as agents, agents[0].use():
        return run_steps(seeds, 4)


def test_steps_are_chosen_by_their_seed():
    programs = [make_program(seed, 4) for seed in range(300)]
    assert programs == [make_program(seed, 4) for seed in range(300)]
    assert {call.way for each in programs for call in each.calls} == {*COMMON_WAYS, *OTHER_WAYS}


def test_compiled_steps_give_the_same_bits():
    report = captured_steps(range(REPLAYED, REPLAYED + 3))
    assert not report.problems
    assert report.replays > 10, report.lines()


@pytest.mark.slow
def test_wrong_bits_of_compiled_steps_are_found(monkeypatch):
    apply = Leaving.apply
    monkeypatch.setattr(Leaving, "apply", lambda self, grads: apply(self, tuple(each * 1.0001 for each in grads)))
    assert captured_steps(range(REPLAYED, REPLAYED + 3)).problems


@pytest.mark.processes
@pytest.mark.slow
def test_compiled_steps_on_processes(capsys):
    assert command.main(["--captured", "--seeds", "10", "--lane", "unix"]) == 0
    assert "10 programs on 4 processes, unix" in capsys.readouterr().out
