"""Programs written for PyTorch run with changed imports, and their losses are those of PyTorch (tests/golden)."""

import os
from contextlib import closing
from pathlib import Path

import pytest
from helpers.golden import recorded
from telegrad.compat.migrate import migrate_file
from telegrad.launcher.environment import reserve_port

TESTS = Path(__file__).parents[1]
LOSSES = recorded("programs")
PROGRAMS = sorted((TESTS / "programs" / "torch").glob("*.py"))


def test_every_program_is_recorded():
    assert LOSSES.keys() - {"torch"} == {program.stem for program in PROGRAMS} and len(PROGRAMS) >= 8


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_only_its_imports_change_and_it_learns_the_same(program, tmp_path, run_python):
    script = tmp_path / program.name
    script.write_text(program.read_text())
    assert migrate_file(script) == []
    before, after = program.read_text().splitlines(), script.read_text().splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed and all("import" in new and "telegrad.compat.torch" in new for _, new in changed)

    with closing(reserve_port()) as reserved:
        port = str(reserved.getsockname()[1])
    said = run_python(script, env={**os.environ, "MASTER_PORT": port, "OMP_NUM_THREADS": "1"})
    losses = [float(line.split()[1]) for line in said.splitlines() if line.startswith("loss ")]
    assert losses == pytest.approx(LOSSES[program.stem], rel=1e-9)
