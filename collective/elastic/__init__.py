"""Training whose workers come, leave and are lost between two steps."""

from typing import TYPE_CHECKING

from ...base.late_imports import late_imports

if TYPE_CHECKING:
    from .training import ElasticTraining as ElasticTraining
else:  # every agent imports this package, to answer newcomers; few train
    __getattr__ = late_imports(__name__, {"ElasticTraining": ".training"})
