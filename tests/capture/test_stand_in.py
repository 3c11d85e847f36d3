"""``StandIn``: what is written to an array is recorded, whichever way the array is named."""

import numpy as np
import pytest
from telegrad.capture.errors import Unrecordable
from telegrad.capture.tracer import Tracer
from telegrad.capture.values import Kind

WRITES = {
    "method, by name": lambda x: x.clip(0, 2, out=x),
    "method, by position": lambda x: x.clip(0, 2, x),
    "function, by name": lambda x: np.clip(x, 0, 2, out=x),
    "function, by position": lambda x: np.clip(x, 0, 2, x),
    "take": lambda x: x.take([1, 1, 0], None, x),
    "cumsum": lambda x: x.cumsum(0, None, x),
    "ufunc": lambda x: np.multiply(x, 2, x),
    "dot": lambda x: np.dot(np.eye(3), x + 0, x),
}


@pytest.mark.parametrize("way", WRITES)
def test_a_write_is_recorded(way):
    tracer, array = Tracer(lambda tensor: tensor), np.array([-1.0, 1.0, 3.0])
    x = tracer.outside(array) * 1.0
    result = WRITES[way](x)
    assert tracer.statements[-1].kind is Kind.WRITE and tracer.statements[-1].target is x._value
    expected = array * 1.0
    WRITES[way](expected)
    assert np.array_equal(x._example, expected) and np.array_equal(result._example, expected)


def test_an_array_of_the_program_is_not_written_to():
    tracer, mine = Tracer(lambda tensor: tensor), np.zeros(3)
    x = tracer.outside(np.array([-1.0, 1.0, 3.0]))
    for write in (lambda: x.clip(0, 2, out=mine), lambda: x.clip(0, 2, out=x)):
        with pytest.raises(Unrecordable):
            write()
    assert not mine.any()
