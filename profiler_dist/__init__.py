"""The profiler across workers: ``profile`` records what callees do, too; a worker can record what it does for all callers."""

from .server_profile import _server_process_global_profile

__all__ = ["_server_process_global_profile"]
