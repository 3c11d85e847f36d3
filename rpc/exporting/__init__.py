"""Records for other programs: metrics for Prometheus, spans for OpenTelemetry. Imported when a program asks for them."""

from typing import TYPE_CHECKING

from ...base.late_imports import late_imports

if TYPE_CHECKING:
    from .metrics_server import MetricsServer as MetricsServer
    from .prometheus import METRIC_PARTS as METRIC_PARTS
    from .prometheus import WorkerMetrics as WorkerMetrics
else:
    __getattr__ = late_imports(
        __name__,
        {
            "MetricsServer": ".metrics_server",
            **dict.fromkeys(("METRIC_PARTS", "WorkerMetrics"), ".prometheus"),
        },
    )
