"""The snippets of docs/rpc.md run as they stand, on worker processes, and print what the page says."""

import re
import textwrap
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "rpc.md"
PROGRAM = """
import doctest, pathlib, re
text = pathlib.Path({page!r}).read_text()
blocks = re.findall(r"```python\\n(.*?)```", text, re.DOTALL)
test = doctest.DocTestParser().get_doctest("\\n".join(blocks), {{"__name__": "__main__"}}, "rpc.md", {page!r}, 0)
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
runner.run(test)
print(runner.summarize())
raise SystemExit(runner.failures > 0)
"""


def test_every_block_of_code_is_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) > 10 and all(block.startswith(">>> ") for block in blocks)


@pytest.mark.slow
def test_the_snippets_print_what_the_page_says(run_python):
    run_python("-c", textwrap.dedent(PROGRAM).format(page=str(PAGE)))
