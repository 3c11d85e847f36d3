"""``make_uses``: what a program does with gradients after its backward pass, chosen by a seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ...core.extend import Tensor

Use = Callable[[Tensor, Tensor], Tensor | None]  # of a parameter that has a gradient, and the first argument


def clamp(parameter: Tensor, x: Tensor) -> None:
    """Cut off large elements."""
    assert parameter.grad is not None
    parameter.grad.clamp_(-0.5, 0.5)


def scale(parameter: Tensor, x: Tensor) -> None:
    """Multiply by a number that the call computes."""
    assert parameter.grad is not None
    parameter.grad *= x.detach().mean()


def norm(parameter: Tensor, x: Tensor) -> Tensor:
    """Return the norm."""
    assert parameter.grad is not None
    return parameter.grad.norm()


def give(parameter: Tensor, x: Tensor) -> Tensor | None:
    """Return the gradient itself."""
    return parameter.grad


def replace(parameter: Tensor, x: Tensor) -> None:
    """Assign a result."""
    assert parameter.grad is not None
    parameter.grad = parameter.grad * 2 - parameter.detach()


def transpose(parameter: Tensor, x: Tensor) -> None:
    """Assign a view."""
    assert parameter.grad is not None
    parameter.grad = parameter.grad.t() if parameter.ndim == 2 else parameter.grad.flip(0)


def zero(parameter: Tensor, x: Tensor) -> None:
    """Fill with zeros, so that the next pass adds to them."""
    assert parameter.grad is not None
    parameter.grad.zero_()


def clear(parameter: Tensor, x: Tensor) -> None:
    """Remove the gradient."""
    parameter.grad = None


_ALL: list[Use] = [clamp, clamp, scale, scale, norm, give, replace, transpose, zero, clear]


def make_uses(random: Random) -> list[Use]:
    """Return the uses of a program: none for most of them.

    Args:
        random: chooses.
    """
    return random.choices(_ALL, k=random.choice([1, 1, 2, 3])) if random.random() < 0.4 else []


def use_gradients(uses: list[Use], parameters: list[Tensor], x: Tensor) -> list[Tensor]:
    """Do these things with the gradients, and return what they return."""
    results = [use(each, x) for use in uses for each in parameters if each.grad is not None]
    return [each for each in results if each is not None]
