"""Checkpoints of activations (``torch.utils.checkpoint``)."""

from telegrad.autograd import checkpoint as checkpoint
from telegrad.autograd import checkpoint_sequential as checkpoint_sequential
