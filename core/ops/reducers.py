"""NumPy's reductions as its ufuncs have them.

The methods of arrays do the same a Python call later, and warn of ``inf - inf`` in NumPy's name instead of ours. Typed
loosely, because the stubs know no ``keepdims`` that is a variable.
"""

from typing import Any

import numpy as np

add_reduce: Any = np.add.reduce
multiply_reduce: Any = np.multiply.reduce
maximum_reduce: Any = np.maximum.reduce
minimum_reduce: Any = np.minimum.reduce
