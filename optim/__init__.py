"""Optimizers (``torch.optim``)."""

from .adagrad import Adagrad
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer"]
