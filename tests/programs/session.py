"""Program that gives the prompts of a page, which it reads from standard input, and ends with 1 if one printed something else.

It does so inside a running event loop, as a notebook does with its cells: what is right there is right in a plain prompt too.
"""

import asyncio
import doctest
import json
import re
import sys

given = json.load(sys.stdin)


class Checker(doctest.OutputChecker):
    """Checker to which times and dates are equal."""

    def check_output(self, want, got, flags):
        for pattern, replacement in given["changing"]:
            want, got = re.sub(pattern, replacement, want), re.sub(pattern, replacement, got)
        return super().check_output(want, got, flags)


async def session():
    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    names = {"__name__": "__main__"}
    for place, text in given["prompts"]:
        test = doctest.DocTestParser().get_doctest(text, names, place, place, 0)
        test.globs = names  # not a copy: a later block has the names of the former ones
        runner.run(test, clear_globs=False)
    return runner.summarize(verbose=False).failed


sys.exit(asyncio.run(session()) > 0)
