"""Checkpoints of activations (``torch.utils.checkpoint``)."""

import telegrad

checkpoint = telegrad.autograd.checkpoint
checkpoint_sequential = telegrad.autograd.checkpoint_sequential
