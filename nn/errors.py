"""Error of a state dict that does not fit."""

from ..base.errors import TelegradError


class StateDictError(TelegradError, RuntimeError):
    """State dict that does not fit the module: the message lists missing and unexpected keys, and wrong shapes."""
