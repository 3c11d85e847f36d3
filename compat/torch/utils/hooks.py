"""Handles of hooks (``torch.utils.hooks``)."""

from ....core.extend import RemovableHandle as RemovableHandle
