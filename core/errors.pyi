from ..base.errors import *
