"""``tg.linalg``: linear algebra under the names of ``torch.linalg``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .signatures.linalg import *  # noqa: F403
else:
    from .namespaces import functions_of as _functions_of

    _functions = _functions_of("linalg")
    __all__ = list(_functions)
    globals().update(_functions)
