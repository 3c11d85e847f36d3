from .core.autograd import *
