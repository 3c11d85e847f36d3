"""Programs written for PyTorch's RPC keep PyTorch: only lines of remote calls change, and they learn the same."""

import os
from contextlib import closing
from pathlib import Path

import pytest
from helpers.golden import recorded
from telegrad.compat.migrate import migrate_file
from telegrad.launcher.environment import reserve_port

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")

TESTS = Path(__file__).parents[1]
LOSSES = recorded("programs")
PROGRAMS = sorted((TESTS / "programs" / "torch").glob("*.py"))
OURS = "telegrad.compat.torch"
# Each process imports PyTorch, and the first optimizer its compiler: some seconds of processor time.
IN_CI = ("parameter_server", "rnn")


def each_program():
    marks = {program: () if program.stem in IN_CI else pytest.mark.long for program in PROGRAMS}
    return [pytest.param(program, id=program.stem, marks=each) for program, each in marks.items()]


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("program", each_program())
def test_only_remote_calls_change_and_it_learns_the_same(program, tmp_path, run_python):
    script = tmp_path / program.name
    script.write_text(program.read_text())
    assert migrate_file(script, keep_torch=True) == []
    before, after = program.read_text().splitlines(), script.read_text().splitlines()
    if f"import {OURS}" in after:
        after.remove(f"import {OURS}")
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed and all(new.replace(OURS, "torch") == old for old, new in changed)
    assert not any("torch.nn" in new or "torch.optim" in new for _, new in changed)

    with closing(reserve_port()) as reserved:
        port = str(reserved.getsockname()[1])
    said = run_python(script, timeout=400, env={**os.environ, "MASTER_PORT": port, "OMP_NUM_THREADS": "1"})
    losses = [float(line.split()[1]) for line in said.splitlines() if line.startswith("loss ")]
    assert losses == pytest.approx(LOSSES[program.stem], rel=1e-12)
