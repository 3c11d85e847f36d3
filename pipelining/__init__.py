"""Pipelines: micro-batches through stages on different workers (``torch.distributed.pipelining``)."""

from .pipeline import Pipeline
from .schedules import Action, bubble, schedule_of
from .stage_optimizers import StageOptimizers
from .timeline import Busy, Timeline

__all__ = ["Action", "Busy", "Pipeline", "StageOptimizers", "Timeline", "bubble", "schedule_of"]
