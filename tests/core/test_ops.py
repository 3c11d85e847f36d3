"""Every operation that ships, checked as ``python -m telegrad.tools.ops`` does; and that none is forgotten."""

import pytest
from telegrad.core.extend import OPERATIONS
from telegrad.testing.ops import report
from telegrad.tools.ops.catalogue import CHECKS, EXEMPT


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_operation(check):
    assert report(check, fast=True).samples


@pytest.mark.soak
def test_every_element_of_the_gradients_of_all_operations():
    for check in CHECKS:
        report(check)


def test_no_operation_is_forgotten():
    checked = {check.name.split(":")[0] for check in CHECKS}
    assert not OPERATIONS.keys() - checked - EXEMPT.keys()
    assert not EXEMPT.keys() - OPERATIONS.keys(), "exempt, and there is no such operation"
    assert not EXEMPT.keys() & checked, "exempt, and checked"
