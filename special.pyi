from .core.special import *
