"""Records for other programs: metrics for Prometheus, spans for OpenTelemetry. Imported when a program asks for them."""

from typing import TYPE_CHECKING

from ...core.late_imports import late_imports

if TYPE_CHECKING:
    from .prometheus import MetricsServer, WorkerMetrics
else:
    __getattr__ = late_imports(__name__, dict.fromkeys(("MetricsServer", "WorkerMetrics"), ".prometheus"))

__all__ = ["MetricsServer", "WorkerMetrics"]
