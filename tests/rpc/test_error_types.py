"""``except`` clauses written for PyTorch catch the errors of Telegrad: each row of a table raises what it raises there."""

import builtins

import pytest
from golden.error_rows import DIFFERS, LIBRARY, ROWS
from helpers.golden import recorded
from telegrad.testing import in_process_cluster

RECORD = recorded("errors")


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
