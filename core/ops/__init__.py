"""The operations: table rows (forward and gradient rules) by family, and the functions that users call."""

import warnings

from . import families as families
from . import methods as _methods
from .table import tensor_functions as _recorded

# log(0) is -inf and 0/0 is nan, silently as in PyTorch. Silencing NumPy itself costs more than most operations do.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"telegrad\.")
