import pytest
import telegrad as tg


@pytest.fixture(autouse=True)
def seeded():
    former = tg.get_default_dtype()
    tg.set_default_dtype(tg.float64)
    tg.manual_seed(0)
    yield
    tg.set_default_dtype(former)
