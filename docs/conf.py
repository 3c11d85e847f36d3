"""Configuration of the site: ``make docs`` builds it into ``docs/_build/html`` with Sphinx, without a network."""

import builtins
import re
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

import telegrad
from docutils.nodes import Element, TextElement, document
from pygments.lexers import TextLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import notebooks  # noqa: E402
import reference  # noqa: E402
import reference_names  # noqa: E402

project = "Telegrad"
author = "The Telegrad developers"
version = release = telegrad.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [("py:(class|exc)", r".*")]  # in signatures: types of other libraries, and aliases

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # an override without a docstring is documented where it is declared
autodoc_mock_imports = ["jax"]
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Array", "DType", "Dims", "Operand", "Scalar", "npt.DTypeLike")}
python_maximum_signature_line_length = 110
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries = False  # each page begins with its names; in the side bar they would be copied for every page

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # the anchors are GitHub's, so that links work at both places

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

WORDS = {"is_grad_enabled": "Return whether operations are recorded here."}  # it is a method of a context variable
PATHS = reference_names.public_paths()

html_theme = "furo"
html_static_path = ["static"]
html_extra_path = ["_build/extra"]  # notebooks
html_css_files = ["site.css"]
html_show_copyright = False
html_title = f"Telegrad {release}"


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: TextElement) -> Element | None:
    """Return a link for a class that a signature names by the module in which it is written."""
    path = PATHS.get(node["reftarget"])
    if node.get("refdomain") != "py" or path is None:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "class", path, node, text)


def shorten(app: Sphinx, what: str, name: str, value: Any, options: Any, *signature: str | None) -> Any:
    """Write the names of aliases in a signature, not the objects by which autodoc keeps them; ``None`` changes nothing."""
    texts = [re.sub(r"TypeAliasForwardRef\('(.+?)'\)", r"\1", text or "") for text in signature]
    return tuple(texts) if texts != [text or "" for text in signature] else None


def unlink(app: Sphinx, document: document) -> None:
    """Take the links from Python's own types: ``float`` in a signature is not the dtype ``telegrad.float``."""
    for link in list(document.findall(pending_xref)):
        if link.get("reftype") == "class" and hasattr(builtins, link["reftarget"]):
            link.replace_self(link.children)


def arrows(app: Sphinx, page: str, texts: list[str]) -> None:
    """Show the arrows of a diagram of states as a table: GitHub draws them, which needs a script from a network."""

    def table(diagram: re.Match[str]) -> str:
        rows = re.findall(r"^ *(\w+) --> (\w+): (.*)$", diagram[1], re.MULTILINE)
        return "\n".join(["| from | to | at |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows), ""])

    texts[0] = re.sub(r"```mermaid\nstateDiagram-v2\n(.*?)```\n", table, texts[0], flags=re.DOTALL)


def name_pages(app: Sphinx, page: str, texts: list[str]) -> None:
    """Let a link that shows the name of a page's file show the page's title."""
    texts[0] = re.sub(r"\[`?[\w/]+\.md`?\]\(([\w/.-]+\.md)\)", r"[](\1)", texts[0])


def trim(app: Sphinx, page: str, texts: list[str]) -> None:
    """Leave out the empty line that ends a block of prompts: doctest needs it, and readers do not."""
    texts[0] = re.sub(r"(```python\n *>>> .*?)\n\n( *```)$", r"\1\n\2", texts[0], flags=re.DOTALL | re.MULTILINE)


def offer(app: Sphinx, page: str, texts: list[str]) -> None:
    """Put a link to its notebook at the head of each tutorial."""
    if page in {f"tutorials/{each.stem}" for each in notebooks.pages()}:
        name = f"{Path(page).name}.ipynb"
        link = f'<p class="notebook"><a href="../notebooks/{name}" download>This page as a notebook</a></p>'
        texts[0] = texts[0].replace("\n", f"\n\n{link}\n", 1)


def escape(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape what people write in docstrings and reST reads in another way: plurals of literals, ``*`` in shapes."""
    for number, line in enumerate(lines):
        parts = re.split("(``.+?``)", line)
        text = [re.sub(r"(?<=[(, ])\*(?=[a-z_.]+[ ,)])", r"\\*", part) for part in parts[::2]]
        plain = [f"\\ {part}" if part[:1].isalnum() and index else part for index, part in enumerate(text)]
        lines[number] = "".join(a + b for a, b in zip_longest(plain, parts[1::2], fillvalue=""))


def say(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Give a name the words that its object cannot have."""
    if words := WORDS.get(name.rpartition(".")[2]):
        lines[:] = [words]


def setup(app: Sphinx) -> None:
    """Write the reference and the notebooks, and change what is read and written. Other diagrams are shown as text."""
    reference.write(FOLDER / "api")
    notebooks.write(FOLDER / "_build" / "extra" / "notebooks")
    app.connect("source-read", arrows)
    app.connect("source-read", name_pages)
    app.connect("source-read", offer)
    app.connect("source-read", trim)
    app.connect("autodoc-process-signature", shorten)
    app.connect("doctree-read", unlink)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", say, priority=100)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after napoleon
    app.add_lexer("mermaid", TextLexer)
