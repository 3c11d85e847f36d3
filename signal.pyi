from .core.signal import *
