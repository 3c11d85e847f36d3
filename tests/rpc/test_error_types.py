"""``except`` clauses written for PyTorch catch the errors of Telegrad: each row of a table raises what it raises there."""

import builtins
import os
import subprocess

import pytest
from golden.error_rows import DIFFERS, LIBRARY, ROWS
from helpers.golden import FOLDER, recorded
from telegrad.testing import in_process_cluster

RECORD = recorded("errors")
PEER = os.environ.get("TORCH_PYTHON")


@pytest.mark.parametrize("name", [name for name in ROWS if RECORD[name] is not None and name not in DIFFERS])
def test_an_error_is_of_pytorchs_type(name):
    assert LIBRARY == "telegrad.compat.torch"
    with (
        in_process_cluster("worker0", "worker1") as (worker0, _),
        worker0.use(),
        pytest.raises(getattr(builtins, RECORD[name])),
    ):
        ROWS[name]()


def test_the_record_is_complete():
    assert set(RECORD) - {"torch"} == set(ROWS)


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.skipif(PEER is None, reason="TORCH_PYTHON names no Python that has PyTorch")
def test_the_record_is_pytorchs():
    done = subprocess.run(
        [PEER, FOLDER / "record_errors.py", "--check"], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
