from .core.profiler import *
