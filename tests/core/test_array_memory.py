"""Memory of arrays that begins at a line of the processor's cache."""

import numpy as np
import pytest
from telegrad.core.array_memory import address, aligned


@pytest.mark.parametrize("shape, dtype", [((100, 100), "float32"), ((1 << 14,), "int8"), ((3, 5, 4099), "complex128")])
def test_a_large_array_begins_at_a_line_of_the_cache(shape, dtype):
    for _ in range(5):
        array = aligned(shape, np.dtype(dtype))
        assert address(array) % 64 == 0
        assert (array.shape, array.dtype, array.flags.c_contiguous) == (shape, np.dtype(dtype), True)
        array[...] = 1
        assert array.sum() == array.size


@pytest.mark.parametrize("shape", [(), (0,), (3, 2)])
def test_a_small_array_is_one_of_numpys(shape):
    array = aligned(shape, np.dtype("float32"))
    assert array.base is None and array.shape == shape
