"""The functions, classes and dtypes that ``telegrad`` offers under the same names."""

import typing as _typing

from .constants import *  # noqa: F403
from .devices import *  # noqa: F403
from .dtype_names import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .random import *  # noqa: F403
from .size import Size as Size
from .tensors.printing import *  # noqa: F403

if _typing.TYPE_CHECKING:
    from .signatures.functions import *  # noqa: F403
else:
    from .namespaces import functions_of as _functions_of

    globals().update(_functions_of(""))
