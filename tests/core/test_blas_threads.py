"""The number of threads of products of matrices."""

import pytest
import telegrad as tg


@pytest.fixture(autouse=True)
def _restored():
    former = tg.get_num_threads()
    yield
    tg.set_num_threads(former)


def test_the_number_of_threads_can_be_set():
    for number in (1, 2):
        tg.set_num_threads(number)
        assert tg.get_num_threads() == number
        assert (tg.ones(200, 200) @ tg.ones(200, 200))[0, 0].item() == 200


def test_misuse_is_told():
    with pytest.raises(RuntimeError, match="at least 1"):
        tg.set_num_threads(0)
    with pytest.raises(TypeError, match="a whole number"):
        tg.set_num_threads("two")
