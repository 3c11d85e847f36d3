"""Configuration of the site: ``make docs`` builds it into ``docs/_build/html`` with Sphinx, without a network."""

import telegrad
from pygments.lexers import TextLexer
from sphinx.application import Sphinx

project = "Telegrad"
author = "The Telegrad developers"
version = release = telegrad.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # the anchors are GitHub's, so that links work at both places

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"Telegrad {release}"


def setup(app: Sphinx) -> None:
    """Show pictures that only GitHub draws as their text: drawing them would need a script from a network."""
    app.add_lexer("mermaid", TextLexer)
