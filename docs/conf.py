"""The manual as a site: `make site` builds it, offline, and takes a warning or a dead link for an error."""

from __future__ import annotations

import re
from importlib.metadata import version as installed

from pygments.lexers.special import TextLexer
from pygments.lexers.sql import SqlLexer
from sphinx.application import Sphinx

project = "Transom"
author = "the Transom developers"
project_copyright = author
release = version = installed("transom")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
root_doc = "index"
html_theme = "furo"
html_title = "Transom"
html_show_sphinx = False
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
default_role = "code"
python_use_unqualified_type_names = True

# What stands behind a fence says what a block is to the tests that run the pages.
BLOCKS = ("stream", "table", "result", "file", "error")

OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:examples|benchmarks)/[^)]+)\)")


def _link_within(app: Sphinx, page: str, source: list[str]) -> None:
    """Pages are read in the repository as well, where folders and files beside `docs` can be linked to."""
    source[0] = OUTSIDE.sub(r"\1 (`\2`)", source[0].replace("](decisions/)", "](site/decisions.rst)"))


def setup(app: Sphinx) -> None:
    app.connect("source-read", _link_within)
    app.add_lexer("cql", SqlLexer)
    for kind in BLOCKS:
        app.add_lexer(kind, TextLexer)
