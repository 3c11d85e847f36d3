"""``tg.masked``: operations on the elements that a mask shows, under the names of ``torch.masked``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .signatures.masked import *  # noqa: F403
else:
    from .namespaces import functions_of as _functions_of

    _functions = _functions_of("masked")
    __all__ = list(_functions)
    globals().update(_functions)
