"""Every operation that ships, checked as ``python -m telegrad.testing.ops`` does; and that none is forgotten."""

import pytest
from telegrad.testing.ops import report
from telegrad.testing.ops.catalogue import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_operation(check):
    assert report(check).samples
