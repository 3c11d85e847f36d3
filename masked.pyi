from .core.masked import *
