"""``seeded``: random numbers that are the same in each run of a test."""

import pytest
import telegrad as tg


@pytest.fixture
def seeded():
    tg.manual_seed(5)
