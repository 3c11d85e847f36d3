"""``tg.fft``: discrete Fourier transforms under the names of ``torch.fft``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .signatures.fft import *  # noqa: F403
else:
    from .namespaces import functions_of as _functions_of

    _functions = _functions_of("fft")
    __all__ = list(_functions)
    globals().update(_functions)
