from .core.futures import *
