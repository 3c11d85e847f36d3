"""Fills for fresh parameters (``torch.nn.init``). All work in place, outside every graph, and return their tensor."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from ..core import Generator, randperm
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


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal with that mean and standard deviation, drawn again where it is not within ``a`` and ``b``."""
    normal = NormalDist(mean, std)
    low, high = normal.cdf(a), normal.cdf(b)
    # By the inverse of the distribution function, which needs no second draw.
    uniform_(tensor, low, high, generator)
    values = tensor.detach()
    inverse = np.vectorize(normal.inv_cdf, otypes=[np.float64])
    inside = np.clip(values.numpy().astype(np.float64), np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg)
    if values.numel():
        values.copy_(Tensor(np.clip(inverse(inside), a, b)))
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Rows, or columns if there are fewer, that are orthogonal and of length ``gain`` (Saxe et al. 2013).

    Dimensions after the first are taken as one.

    Raises:
        ValueError: the tensor has fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_() needs at least two dimensions, and the tensor has shape {tensor.shape}")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    if not tensor.numel():
        return tensor
    tall = normal_(Tensor(np.empty((max(rows, columns), min(rows, columns)), np.float64)), generator=generator)
    q, r = np.linalg.qr(tall.numpy())
    q *= np.sign(np.diagonal(r))  # or the result would not be uniform
    values = q if rows >= columns else q.T
    tensor.detach().copy_(Tensor(values.reshape(tensor.shape) * gain))
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal numbers, of which the part ``sparsity`` of each column is set to 0 (Martens 2010).

    Raises:
        ValueError: the tensor is no matrix.
    """
    if tensor.ndim != 2:
        raise ValueError(f"sparse_() needs a matrix, and the tensor has shape {tensor.shape}")
    normal_(tensor, 0, std, generator)
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    values = tensor.detach().numpy()
    for column in range(columns):
        values[randperm(rows, generator=generator).numpy()[:zeros], column] = 0
    tensor.detach().mul_(1)  # graphs that saved it must notice
    return tensor


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere.

    Raises:
        ValueError: the tensor is no matrix.
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_() needs a matrix, and the tensor has shape {tensor.shape}")
    tensor.detach().copy_(Tensor(np.eye(tensor.shape[0], tensor.shape[1])))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight that passes on as many channels as it can, in each of ``groups`` groups.

    Raises:
        ValueError: the tensor has not three to five dimensions, or ``groups`` does not divide the first.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(
            f"dirac_() needs a weight of three to five dimensions, and the tensor has shape {tensor.shape}"
        )
    if groups < 1 or tensor.shape[0] % groups:
        raise ValueError(f"groups={groups} must divide the first length of the weight, {tensor.shape[0]}")
    outputs = tensor.shape[0] // groups
    values = np.zeros(tensor.shape)
    middle = tuple(length // 2 for length in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(outputs, tensor.shape[1])):
            place = (group * outputs + channel, channel, *middle)
            values[place] = 1
    tensor.detach().copy_(Tensor(values))
    return tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a layer's weights must be larger because of the nonlinearity after it.

    Raises:
        ValueError: it is unknown.
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    convolutions = {f"conv{form}{dims}d": 1.0 for form in ("", "_transpose") for dims in (1, 2, 3)}
    gains = {"linear": 1.0, **convolutions, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
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
