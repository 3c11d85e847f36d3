"""Base class of distributions that are a standard one, shifted by ``loc`` and scaled by ``scale``."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


class LocationScale(Distribution):
    """Distribution on the real line: ``loc + scale * z``, where ``z`` has a standard distribution.

    Args:
        loc: where the density is greatest.
        scale: the width, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _standard(self, value: Tensor) -> Tensor:
        """Return ``(value - loc) / scale``."""
        return (self._checked(value) - self.loc) / self.scale
