"""What can be wrong with a state dict."""

from ..core.errors import TelegradError


class StateDictError(TelegradError, RuntimeError):
    """A state dict does not fit the module: the message lists missing and unexpected keys, and wrong shapes."""
