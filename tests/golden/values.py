"""Values that several recorders give to PyTorch, and its results as lists of tensors."""

import torch


def numbers(seed, *shape):
    """Exact in any library, and of no pattern that a mistake could keep."""
    count = torch.Size(shape).numel()
    return (((torch.arange(count) * 37 + seed * 11) % 29) / 16 - 0.9).reshape(shape)


def flat(value):
    """The tensors in nested sequences, in order, without ``None``."""
    if value is None:
        return []
    return [value] if isinstance(value, torch.Tensor) else [tensor for item in value for tensor in flat(item)]
