"""Fills for fresh parameters (``torch.nn.init``). All work in place, outside every graph, and return their tensor."""

from __future__ import annotations

import math

from ..core import Generator
from ..core.extend import Tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform in [``a``, ``b``)."""
    # detach() shares memory and version counter, and may be written to.
    tensor.detach().uniform_(a, b, generator=generator)
    return tensor


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with that mean and standard deviation."""
    tensor.detach().normal_(mean, std, generator=generator)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """``val`` everywhere."""
    tensor.detach().fill_(val)
    return tensor


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform, with a variance that keeps signals and gradients alike in size (Glorot and Bengio 2010)."""
    return _uniform_of_std(tensor, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """The normal form of ``xavier_uniform_``."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform, with a variance that keeps signals alike in size through rectifiers (He et al. 2015).

    Args:
        tensor: shape (out, in, ...).
        a: the slope of the leaky rectifier below 0.
        mode: "fan_in" keeps the size of signals, "fan_out" that of gradients.
        nonlinearity: what follows the layer; see ``calculate_gain``.
        generator: where the numbers come from.

    Raises:
        ValueError: the tensor has fewer than two dimensions, or ``mode`` or ``nonlinearity`` is unknown.
    """
    return _uniform_of_std(tensor, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """The normal form of ``kaiming_uniform_``."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a layer's weights must be larger because of the nonlinearity after it.

    Raises:
        ValueError: it is unknown.
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    gains = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
    if nonlinearity not in gains:
        known = ", ".join(["leaky_relu", *gains])
        raise ValueError(f"nonlinearity must be one of {known}, and you gave {nonlinearity!r}")
    return gains[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output of a weight of shape (out, in, ...) sees, and how many outputs each input reaches.

    Raises:
        ValueError: fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(
            f"this fill needs a weight of at least two dimensions (out, in), and it has shape {tensor.shape}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'mode must be "fan_in" or "fan_out", and you gave {mode!r}')
    fan = fans(tensor)[mode == "fan_out"]
    # A layer without inputs has no weights, and so no variance that would matter.
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def _uniform_of_std(tensor: Tensor, std: float, generator: Generator | None) -> Tensor:
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)
