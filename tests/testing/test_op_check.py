"""The check of a user's own operation finds wrong values, wrong gradients, and what depends on the memory layout."""

import numpy as np
import pytest
import telegrad as tg
from telegrad.core.autograd import GradcheckError
from telegrad.testing.ops import SHAPES, OpCheck, report, unary


def cube(value):
    return value * value * value


def test_a_right_operation_passes_and_its_dtypes_are_reported():
    found = report(OpCheck("cube", cube, unary(signs=True), reference=lambda x: x**3))
    assert found.samples == len(SHAPES) and found.orders == 2
    assert {"float16", "float32", "float64"} <= set(found.dtypes)


def test_wrong_values_are_named_with_the_sample():
    with pytest.raises(AssertionError, match=r"cube of \(\)"):
        report(OpCheck("cube", cube, unary(), reference=lambda x: x**2))


def test_a_wrong_gradient_is_found():
    def half_of_the_gradient(value):
        return value * value.detach()

    with pytest.raises(GradcheckError, match="square of"):
        report(OpCheck("square", half_of_the_gradient, unary()))


def test_a_result_that_depends_on_the_memory_layout_is_found():
    def raw(value):
        return tg.tensor(np.frombuffer(value.numpy(force=True).base or value.numpy(force=True))[: value.numel()])

    with pytest.raises((AssertionError, ValueError), match="raw of"):
        report(OpCheck("raw", raw, unary(), orders=0))
