from .core.sparse import *
