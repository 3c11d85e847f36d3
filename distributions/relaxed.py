"""Base class of relaxed discrete distributions: their parameters are those of the distribution that they transform."""

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor
from .transformed import TransformedDistribution


class Relaxed(TransformedDistribution):
    """Transform of a distribution that has a ``temperature``, and ``probs`` or ``logits``."""

    base_dist: Any

    def _given(self) -> dict[str, Tensor]:
        return self.base_dist._given()

    def _options(self) -> dict[str, Any]:
        return self.base_dist._options()

    @property
    def temperature(self) -> Tensor:
        """Return the temperature."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """Return the probabilities."""
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        """Return the logarithms of the odds, or of the probabilities."""
        return self.base_dist.logits
