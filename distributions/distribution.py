"""``Distribution``: the base class of all distributions, and the checks of their parameters and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import as_tensor, broadcast_shapes, broadcast_to, exp, get_default_dtype, no_grad
from ..core.extend import Tensor
from .constraints import Constraint, is_dependent

Shape = tuple[int, ...]


class Distribution:
    """Base class of all distributions (``torch.distributions.Distribution``).

    A distribution is a batch of independent ones, one for each element of its parameters. Results and samples have the dtype of
    the parameters, but samples of ``Categorical``, which are integers.

    Args:
        batch_shape: the shape of the batch: that of the parameters, broadcast.
        event_shape: the shape of one sample of one distribution.
        validate_args: whether parameters and values are checked; ``None`` takes the default (``set_default_validate_args``).

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Constraint
    has_rsample = False
    has_enumerate_support = False
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
                if name in vars(self) and not is_dependent(constraint):
                    self._require(constraint, getattr(self, name), f"parameter {name}")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments when ``validate_args`` is not given. It is True at first."""
        Distribution._validate_args = value

    # -- defined by subclasses, as far as it exists for them

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return samples through which gradients reach the parameters.

        Args:
            sample_shape: number of samples in each dimension.

        Returns:
            A tensor of shape ``(*sample_shape, *batch_shape, *event_shape)``.

        Raises:
            NotImplementedError: this distribution has no such samples.
        """
        raise NotImplementedError(f"{type(self).__name__} has no rsample(); gradients can go through log_prob()")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return samples of shape ``(*sample_shape, *batch_shape, *event_shape)``, without a graph."""
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, or of the probability, at ``value``.

        Args:
            value: of a shape that broadcasts with ``(*batch_shape, *event_shape)``.

        Returns:
            A tensor of the broadcast shape without its last ``len(event_shape)`` dimensions.

        Raises:
            ValueError: ``value`` has another shape, or is outside the support.
        """
        raise self._without("log_prob()")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape ``batch_shape``."""
        raise self._without("entropy()")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample of at most ``value``, element by element."""
        raise self._without("cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile of the probability ``value``: the inverse of ``cdf``."""
        raise self._without("icdf()")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values that samples can have, along a new first dimension.

        Args:
            expand: expand the other dimensions to ``batch_shape``; otherwise they have length 1.
        """
        raise self._without("enumerate_support()")

    @property
    def mean(self) -> Tensor:
        """Return the mean, of shape ``(*batch_shape, *event_shape)``."""
        raise self._without("mean")

    @property
    def mode(self) -> Tensor:
        """Return the value of the greatest density, of shape ``(*batch_shape, *event_shape)``.

        If it is not unique, it is nan or the first one."""
        raise self._without("mode")

    @property
    def variance(self) -> Tensor:
        """Return the variance of each element, of shape ``(*batch_shape, *event_shape)``."""
        raise self._without("variance")

    @property
    def stddev(self) -> Tensor:
        """Return the standard deviation: the square root of ``variance``."""
        return self.variance.sqrt()

    def perplexity(self) -> Tensor:
        """Return ``exp(entropy())``."""
        return exp(self.entropy())

    def expand(self, batch_shape: Sequence[int]) -> Distribution:
        """Return the same distribution with its parameters broadcast to ``batch_shape``."""
        shape = tuple(batch_shape)
        parameters = {
            name: broadcast_to(value, (*shape, *value.shape[value.ndim - self.arg_constraints[name].event_dim :]))
            for name, value in self._given().items()
        }
        return type(self)(**parameters, **self._options(), validate_args=False)  # type: ignore[arg-type]

    def _given(self) -> dict[str, Tensor]:
        """Return the parameters that this distribution was made with."""
        return {name: value for name, value in vars(self).items() if name in self.arg_constraints}

    def _options(self) -> dict[str, Any]:
        """Return the other arguments that it was made with."""
        return {}

    # -- for subclasses

    def _extended(self, sample_shape: Sequence[int]) -> Shape:
        if not isinstance(sample_shape, (tuple, list)):
            raise TypeError(f"sample_shape is a tuple of lengths, as (3,), and you gave {sample_shape!r}")
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def _checked(self, value: Any) -> Tensor:
        """Return a value as a tensor, after checking that its shape fits and that it is in the support."""
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
    """Return numbers and tensors as tensors of one shape; numbers take the dtype of the first tensor."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    dtype = tensors[0].dtype if tensors else get_default_dtype()
    made = [value if isinstance(value, Tensor) else as_tensor(value, dtype) for value in values]
    shape = broadcast_shapes(*(tensor.shape for tensor in made))
    return tuple(broadcast_to(tensor, shape) for tensor in made)


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return the sum over the last ``dims`` dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


def _excerpt(value: Tensor) -> str:
    return repr(value.detach()) if value.numel() <= 8 else f"a {value.dtype} tensor of shape {value.shape}"
