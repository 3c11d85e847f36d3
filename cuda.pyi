from .core.cuda import *
