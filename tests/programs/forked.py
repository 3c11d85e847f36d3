"""Program of a fork server that tests share: run in a new worker the program that a variable names, with its arguments."""

import json
import os
import sys

sys.argv[:] = json.loads(os.environ.pop("PROGRAM_OF_TEST"))
__file__ = sys.argv[0]
with open(__file__, "rb") as _source:
    exec(compile(_source.read(), __file__, "exec"))
