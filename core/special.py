"""``tg.special``: functions of mathematical physics and statistics under the names of ``torch.special``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .signatures.special import *  # noqa: F403
else:
    from .namespaces import functions_of as _functions_of

    _functions = _functions_of("special")
    __all__ = list(_functions)
    globals().update(_functions)
