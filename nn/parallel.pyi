from ..collective.parallel import *
