"""The pictures of contexts, in docs/distributed-autograd.md and the README, are drawn by the code as it is."""

import re
import runpy
from pathlib import Path

import telegrad as tg

DOCS = Path(tg.__file__).parent / "docs"


def test_the_pictures_are_fresh(tmp_path):
    page = (DOCS / "distributed-autograd.md").read_text() + (DOCS.parent / "README.md").read_text()
    runpy.run_path(str(DOCS / "pictures" / "draw_contexts.py"))["draw_all"](tmp_path)
    shown = re.findall(r"\((?:docs/)?pictures/(\w+\.svg)\)", page)
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        assert (tmp_path / name).read_text() == (DOCS / "pictures" / name).read_text(), (
            "run docs/pictures/draw_contexts.py"
        )
