"""``Unrecordable``: the reason why a call cannot be recorded. ``GivenUp``: the reason why a replay of it ended at once."""

from __future__ import annotations

from collections.abc import Sequence

from .lines import Place

OTHER_LIBRARIES = {"torch": "PyTorch", "jax": "JAX", "jaxlib": "JAX", "cupy": "CuPy"}
DISTURBED = "a tensor from outside was changed by something that is not recorded"
"""Reason: another thread may have changed it."""
EARLY = "no gradients have come back from the calls of other workers in the recorded call before"
"""Reason: they may be on their way."""


class Unrecordable(Exception):
    """Raised where a recording must end; its text is the reason that users read.

    Args:
        reason: the text.
        names: of variables and attributes whose use is the reason.
        places: in the program that are the reason, if they are others than the one where it is raised.

    Attributes:
        look: the number of the look that is the reason, if it is one.
    """

    def __init__(self, reason: str, names: tuple[str, ...] = (), places: Sequence[Place] = ()) -> None:
        super().__init__(reason)
        self.names, self.places = names, places
        self.look: int | None = None


def check_library(module: str) -> None:
    """Raise if a module is of another library of arrays.

    Args:
        module: its name.

    Raises:
        Unrecordable: it is.
    """
    if (library := OTHER_LIBRARIES.get(module.partition(".")[0])) is not None:
        raise Unrecordable(f"it uses {library}, whose operations are not recorded")


class GivenUp(Exception):
    """Raised in a replay that has changed nothing, and that another worker cannot take part in. Its text is the reason.

    Args:
        reason: the text.
        final: whether another recording would end in the same way.
    """

    def __init__(self, reason: str, final: bool) -> None:
        super().__init__(reason)
        self.final = final
