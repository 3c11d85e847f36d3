"""Checkpoints of a training: numbered, verified, the last and the best kept; and exact resumption."""

from ..core.serialization import CheckpointError as CheckpointError
from .checkpointer import Checkpointer as Checkpointer
from .folder import Entry as Entry
from .reading import CheckpointWarning as CheckpointWarning
from .reading import describe as describe
from .reading import summaries as summaries
from .reading import verify as verify
