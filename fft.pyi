from .core.fft import *
