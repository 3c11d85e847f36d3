from .base.allocator import *
