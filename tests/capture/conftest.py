"""``sides``: the same program eagerly and compiled, side by side."""

import warnings

import pytest
from helpers.compiled import Sides


@pytest.fixture
def sides(recwarn):
    """Return a ``Sides``; warnings are collected and not raised."""
    with warnings.catch_warnings():
        warnings.filterwarnings("default", message=r".*\(\) (runs eagerly|was called)")
        yield Sides(recwarn)
