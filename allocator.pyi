from .core.allocator import *
