"""Distributions that are one standard form, moved by ``loc`` and stretched by ``scale``."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


class LocationScale(Distribution):
    """A distribution on the real line around ``loc``, where its density is greatest, of width ``scale``."""

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
        """A value as one of the standard form."""
        return (self._checked(value) - self.loc) / self.scale
