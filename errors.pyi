from .base.errors import *
