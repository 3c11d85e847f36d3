from .core.linalg import *
