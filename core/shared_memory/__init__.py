"""Memory that several processes map: segments, those of this process, and how they travel to another process."""

from .forks import fork_count
from .sealed import SealedFile, map_sealed, open_sealed, write_sealed
from .segments import Descriptor, Segment, create_segment, open_segment
from .transit import Address, SharedMemoryError

__all__ = [
    "Address",
    "Descriptor",
    "SealedFile",
    "Segment",
    "SharedMemoryError",
    "create_segment",
    "fork_count",
    "map_sealed",
    "open_sealed",
    "open_segment",
    "write_sealed",
]
