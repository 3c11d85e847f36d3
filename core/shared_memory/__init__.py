"""Memory that several processes map: segments, those of this process, and how they travel to another process."""

from .forks import fork_count
from .segments import Descriptor, Segment, create_segment, open_segment
from .transit import Address, SharedMemoryError

__all__ = ["Address", "Descriptor", "Segment", "SharedMemoryError", "create_segment", "fork_count", "open_segment"]
