"""Initialization of parameters (``torch.nn.init``). All functions write in place, unrecorded, and return their tensor."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from ..core import Generator, rand, randn, randperm
from ..core.extend import Tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform random numbers from [``a``, ``b``).

    Args:
        tensor: any shape, floating-point; it is written to.
        a, b: the bounds.
        generator: source of the random numbers; the default generator if ``None``.
    """
    # detach() shares memory and version counter, and may be written to.
    tensor.detach().uniform_(a, b, generator=generator)
    return tensor


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal random numbers.

    Args:
        tensor: any shape, floating-point; it is written to.
        mean, std: mean and standard deviation.
        generator: source of the random numbers; the default generator if ``None``.
    """
    tensor.detach().normal_(mean, std, generator=generator)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with ``val``.

    Args:
        tensor: any shape and dtype; it is written to.
        val: the value.
    """
    tensor.detach().fill_(val)
    return tensor


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Args:
        tensor: any shape and dtype; it is written to.
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Args:
        tensor: any shape and dtype; it is written to.
    """
    return constant_(tensor, 0.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform random numbers of variance ``gain ** 2 * 2 / (fan_in + fan_out)`` (Glorot and Bengio 2010).

    So signals and gradients keep their size from layer to layer.

    Args:
        tensor: shape (out, in, ...), floating-point; it is written to.
        gain: factor, as from ``calculate_gain``.
        generator: source of the random numbers; the default generator if ``None``.

    Raises:
        ValueError: the tensor has fewer than two dimensions.
    """
    return _uniform_of_std(tensor, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal random numbers of variance ``gain ** 2 * 2 / (fan_in + fan_out)`` (Glorot and Bengio 2010).

    Args:
        tensor: shape (out, in, ...), floating-point; it is written to.
        gain: factor, as from ``calculate_gain``.
        generator: source of the random numbers; the default generator if ``None``.

    Raises:
        ValueError: the tensor has fewer than two dimensions.
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with uniform random numbers of variance ``gain ** 2 / fan`` (He et al. 2015).

    So signals keep their size through rectifiers. ``fan`` is that of ``mode``, ``gain`` that of ``nonlinearity``.

    Args:
        tensor: shape (out, in, ...), floating-point; it is written to.
        a: slope below 0 of the leaky rectifier that follows.
        mode: "fan_in" keeps the size of signals, "fan_out" that of gradients.
        nonlinearity: function that follows the layer; see ``calculate_gain``.
        generator: source of the random numbers; the default generator if ``None``.

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
    """Fill with normal random numbers of variance ``gain ** 2 / fan`` (He et al. 2015).

    Args:
        tensor: shape (out, in, ...), floating-point; it is written to.
        a: slope below 0 of the leaky rectifier that follows.
        mode: "fan_in" keeps the size of signals, "fan_out" that of gradients.
        nonlinearity: function that follows the layer; see ``calculate_gain``.
        generator: source of the random numbers; the default generator if ``None``.

    Raises:
        ValueError: the tensor has fewer than two dimensions, or ``mode`` or ``nonlinearity`` is unknown.
    """
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal random numbers between ``a`` and ``b``.

    Args:
        tensor: any shape, floating-point; it is written to.
        mean, std: mean and standard deviation of the distribution that is cut off.
        a, b: the bounds.
        generator: source of the random numbers; the default generator if ``None``.
    """
    normal = NormalDist(mean, std)
    low, high = normal.cdf(a), normal.cdf(b)
    # By the inverse of the distribution function, which needs no second draw.
    drawn = rand(tensor.shape, dtype=tensor.dtype, generator=generator).numpy() * (high - low) + low
    inverse = np.vectorize(normal.inv_cdf, otypes=[np.float64])
    inside = np.clip(drawn.astype(np.float64), np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg)
    if tensor.numel():
        tensor.detach().copy_(Tensor(np.clip(inverse(inside), a, b)))
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a random matrix of orthogonal rows, or columns if there are fewer (Saxe et al. 2013).

    Args:
        tensor: shape (rows, ...), with all other dimensions taken as columns, floating-point; it is written to.
        gain: length of the rows or columns.
        generator: source of the random numbers; the default generator if ``None``.

    Raises:
        ValueError: the tensor has fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_() needs at least two dimensions, and the tensor has shape {tensor.shape}")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    if not tensor.numel():
        return tensor
    tall = randn(max(rows, columns), min(rows, columns), dtype=np.float64, generator=generator)
    q, r = np.linalg.qr(tall.numpy())
    q *= np.sign(np.diagonal(r))  # or the result would not be uniform
    values = q if rows >= columns else q.T
    tensor.detach().copy_(Tensor(values.reshape(tensor.shape) * gain))
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal random numbers, and set a part of each column to 0 (Martens 2010).

    Args:
        tensor: shape (rows, columns), floating-point; it is written to.
        sparsity: part of each column that is 0.
        std: standard deviation of the other elements.
        generator: source of the random numbers; the default generator if ``None``.

    Raises:
        ValueError: the tensor is not a matrix.
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
    """Fill a matrix with ones on the diagonal and zeros elsewhere.

    Args:
        tensor: shape (rows, columns), floating-point; it is written to.

    Raises:
        ValueError: the tensor is not a matrix.
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_() needs a matrix, and the tensor has shape {tensor.shape}")
    tensor.detach().copy_(Tensor(np.eye(tensor.shape[0], tensor.shape[1])))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that its first outputs are its inputs.

    Args:
        tensor: shape (out, in, *kernel_size), with one to three lengths of the kernel, floating-point; it is written
            to.
        groups: number of groups of outputs; each starts from the first input.

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
            index = (group * outputs + channel, channel, *middle)
            values[index] = 1
    tensor.detach().copy_(Tensor(values))
    return tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights are scaled for the nonlinearity that follows the layer.

    It is 5 / 3 for "tanh", sqrt(2) for "relu", sqrt(2 / (1 + slope ** 2)) for "leaky_relu", 3 / 4 for "selu", and 1 for
    "linear", "sigmoid" and convolutions.

    Args:
        nonlinearity: name of the function.
        param: slope of "leaky_relu"; 0.01 if ``None``.

    Raises:
        ValueError: the name is unknown.
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
    """Return the number of inputs of each output (fan_in) and of outputs of each input (fan_out).

    Args:
        tensor: weight of shape (out, in, ...).

    Raises:
        ValueError: it has fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(
            f"this initialization needs a weight of at least two dimensions (out, in), and its shape is {tensor.shape}"
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
