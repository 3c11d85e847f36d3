from .core.errors import *
