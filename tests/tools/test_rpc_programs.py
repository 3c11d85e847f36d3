"""Random programs over workers: the check passes, replays, and finds results that are wrong."""

import pytest
from telegrad.rref import RRef
from telegrad.tools import repeated
from telegrad.tools.rpc_programs import __main__ as command
from telegrad.tools.rpc_programs import graph, lanes, meshes, simulated
from telegrad.tools.rpc_programs.cells import GRAPH_FUNCTIONS, Cell
from telegrad.tools.rpc_programs.model import results_in_one_process
from telegrad.tools.rpc_programs.program import BLOCKING, make_program
from telegrad.tools.rpc_programs.run import ACTIONS

GRAPH_CALLS = {(function, form) for function in GRAPH_FUNCTIONS for form in graph.FORMS[:2]} | {
    (function, "receiver") for function in graph.TAKE_CELLS
}


def test_programs_replay_and_use_everything():
    programs = [make_program(seed, 4, blocking=True) for seed in range(300)]
    assert programs == [make_program(seed, 4, blocking=True) for seed in range(300)]
    steps = [step for program in programs for step in program.steps]
    assert {step.action for step in steps} == ACTIONS.keys()
    assert {(node.function, node.form) for step in steps for node in step.graph} == GRAPH_CALLS
    calls = [step.mesh for step in steps if step.mesh is not None]
    assert {call.runs for call in calls} == set(meshes.RUNS) and {call.comes for call in calls} == set(meshes.COMES)
    assert {call.given for call in calls} == set(meshes.GIVEN)
    assert any(step.way.startswith(BLOCKING) for step in steps)
    assert not any(step.way.startswith(BLOCKING) for step in make_program(1, 4, blocking=False).steps)
    assert any(result < 0 for program in programs for result in results_in_one_process(program))


def test_differences_are_told():
    program = make_program(3, 2, blocking=True)
    expected = results_in_one_process(program)
    assert lanes.differences(expected, expected, program) == []
    (problem,) = lanes.differences(expected, [expected[0] + 1, *expected[1:]], program)
    assert f"gave {expected[0] + 1}, and in one process {expected[0]}" in problem


@pytest.mark.slow
def test_on_agents_in_this_process(capsys):
    assert command.main(["--seeds", "20", "--on", "inproc"]) == 0
    assert "20 programs over inproc, 4 workers" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("lane", ["unix", "tcp", "grpc"])
def test_on_processes(lane):
    assert lanes.check(lane, range(100, 110), 3) == {}


@pytest.mark.slow
def test_in_the_simulator(capsys):
    assert command.main(["--seeds", "60", "--on", "simulator"]) == 0
    assert "in 6 runs of the simulator" in capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.processes
@pytest.mark.parametrize("lane", lanes.LANES)
def test_many(lane):
    assert lanes.check(lane, range(1000, 1200), 4) == {}


@pytest.mark.soak
def test_many_in_the_simulator():
    assert not [problems for _, _, problems in repeated.check(simulated.Programs, range(100, 125), 4, 3000) if problems]


def test_an_update_that_is_lost_is_found(monkeypatch):
    monkeypatch.setattr(Cell, "add", lambda self, number: self.number)
    expected = {seed: results_in_one_process(make_program(seed, 3, blocking=True)) for seed in range(20)}
    monkeypatch.undo()
    found = {seed: results_in_one_process(make_program(seed, 3, blocking=True)) for seed in range(20)}
    assert expected != found


@pytest.mark.slow
def test_a_reference_that_is_kept_is_found(monkeypatch):
    kept = []
    put_in = Cell.put_in
    monkeypatch.setattr(Cell, "put_in", lambda self, cell: (kept.append(cell), put_in(self, cell))[1])
    monkeypatch.setattr(lanes, "SETTLE_SECONDS", 0.2)
    problems = lanes.check("inproc", range(20), 2)
    assert "holds" in problems["in the end"][0] and kept
    for cell in kept:
        if isinstance(cell, RRef):  # the others are those of the one process
            cell.release()
