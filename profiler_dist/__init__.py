"""The profiler across workers: ``profile`` records what callees do, too; a worker can record what it does for all callers."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports

if TYPE_CHECKING:
    from .server_profile import _server_process_global_profile
else:  # every agent imports this package, to answer callers that record; few do
    __getattr__ = late_imports(__name__, {"_server_process_global_profile": ".server_profile"})

__all__ = ["_server_process_global_profile"]
