"""``Distribution``: what all distributions have, and the checks of their parameters and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import as_tensor, broadcast_shapes, broadcast_to, exp, get_default_dtype, no_grad
from ..core.extend import Tensor
from .constraints import Constraint

Shape = tuple[int, ...]


class Distribution:
    """The base of all distributions (``torch.distributions.Distribution``).

    ``batch_shape`` is that of the parameters, one distribution for each element; ``event_shape`` is that of one sample of one
    of them. ``sample(sample_shape)`` is of shape ``(*sample_shape, *batch_shape, *event_shape)``.

    Args:
        batch_shape, event_shape: see above.
        validate_args: whether parameters and values are checked; at first as ``set_default_validate_args`` says, True.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Constraint
    has_rsample = False
    _validate_args: bool = True

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self.batch_shape: Shape = tuple(batch_shape)
        self.event_shape: Shape = tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in vars(self):
                    self._require(constraint, getattr(self, name), f"parameter {name}")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments when ``validate_args`` is not given."""
        Distribution._validate_args = value

    # -- what subclasses define, as far as it exists for them

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples through which gradients reach the parameters.

        Raises:
            NotImplementedError: this distribution has none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no rsample(); gradients can go through log_prob()")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples, outside every graph."""
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or probability, at ``value``."""
        raise self._without("log_prob()")

    def entropy(self) -> Tensor:
        """The entropy in nats, of shape ``batch_shape``."""
        raise self._without("entropy()")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of samples up to ``value``."""
        raise self._without("cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of ``cdf``: the quantile of a probability."""
        raise self._without("icdf()")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that samples can have, along a new first dimension."""
        raise self._without("enumerate_support()")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._without("mean")

    @property
    def mode(self) -> Tensor:
        """The value of the greatest density."""
        raise self._without("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._without("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def perplexity(self) -> Tensor:
        """``exp(entropy())``."""
        return exp(self.entropy())

    def expand(self, batch_shape: Sequence[int]) -> Distribution:
        """The same distribution with its parameters broadcast to ``batch_shape``."""
        shape = tuple(batch_shape)
        parameters = {
            name: broadcast_to(value, (*shape, *value.shape[value.ndim - self.arg_constraints[name].event_dim :]))
            for name, value in self._given().items()
        }
        return type(self)(**parameters, **self._options(), validate_args=False)  # type: ignore[arg-type]

    def _given(self) -> dict[str, Tensor]:
        """The parameters that this distribution was made with."""
        return {name: value for name, value in vars(self).items() if name in self.arg_constraints}

    def _options(self) -> dict[str, Any]:
        """What else it was made with."""
        return {}

    # -- for subclasses

    def _extended(self, sample_shape: Sequence[int]) -> Shape:
        if not isinstance(sample_shape, (tuple, list)):
            raise TypeError(f"sample_shape is a tuple of lengths, as (3,), and you gave {sample_shape!r}")
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def _checked(self, value: Any) -> Tensor:
        """A value whose density is asked for: as a tensor, of a shape that fits, and in the support."""
        value = as_tensor(value)
        if not self._validate_args:
            return value
        if self.event_shape and value.shape[-len(self.event_shape) :] != self.event_shape:
            raise ValueError(
                f"{type(self).__name__} has events of shape {self.event_shape}, and you gave a value of {value.shape}"
            )
        try:
            np.broadcast_shapes(value.shape, (*self.batch_shape, *self.event_shape))
        except ValueError:
            raise ValueError(
                f"a value of shape {value.shape} does not fit {type(self).__name__} of batch shape {self.batch_shape} "
                f"and event shape {self.event_shape}"
            ) from None
        self._require(self.support, value, "value")
        return value

    def _require(self, constraint: Constraint, value: Tensor, what: str) -> None:
        if not bool(constraint.check(value).all()):
            raise ValueError(f"{type(self).__name__}: {what} must be {constraint}, and you gave {_excerpt(value)}")

    def _without(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {what}")

    def __repr__(self) -> str:
        parts = [f"{name}: {_excerpt(value)}" for name, value in self._given().items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the tensors."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    dtype = tensors[0].dtype if tensors else get_default_dtype()
    made = [value if isinstance(value, Tensor) else as_tensor(value, dtype) for value in values]
    shape = broadcast_shapes(*(tensor.shape for tensor in made))
    return tuple(broadcast_to(tensor, shape) for tensor in made)


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last ``dims`` dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


def _excerpt(value: Tensor) -> str:
    return repr(value.detach()) if value.numel() <= 8 else f"a {value.dtype} tensor of shape {value.shape}"
