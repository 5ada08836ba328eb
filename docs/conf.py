"""The manual as a site: `make site` builds it, offline, and takes a warning or a dead link for an error."""

from __future__ import annotations

import re
from importlib.metadata import version as installed

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

# What stands behind a fence says what a block is to the tests that run the pages; here it becomes a caption.
BLOCK = re.compile(r"^```(stream|table|result|file|error|sql|text)\b *(.*)$", re.MULTILINE)
CAPTIONS = {
    "stream": "input: stream {}",
    "table": "input: table {}",
    "file": "{}",
    "error": "the error",
    "result changes": "answer: instant, + enters or - leaves, row",
    "result stream": "answer: instant, row",
    "result snapshots": "answer at these instants",
    "result ledger": "where the rows went",
    "sql flink": "in Flink SQL",
    "sql spark": "in Spark SQL",
    "text plan": "plan",
}

OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:examples|benchmarks)/[^)]+)\)")


def _link_within(app: Sphinx, page: str, source: list[str]) -> None:
    """Pages are read in the repository as well, where folders and files beside `docs` can be linked to."""
    source[0] = OUTSIDE.sub(r"\1 (`\2`)", source[0].replace("](decisions/)", "](site/decisions.rst)"))


def _with_caption(block: re.Match[str]) -> str:
    kind, rest = block.groups()
    caption = CAPTIONS.get(f"{kind} {rest}") or CAPTIONS.get(kind, "")
    if not caption:
        return block[0]
    language = "sql" if kind == "sql" or rest.endswith(".cql") else "python" if rest.endswith(".py") else "text"
    return f'```{{code-block}} {language}\n:caption: "{caption.format(rest)}"\n'


def _caption_blocks(app: Sphinx, page: str, source: list[str]) -> None:
    """A reader of the site does not see what stands behind a fence."""
    source[0] = BLOCK.sub(_with_caption, source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", _link_within)
    app.connect("source-read", _caption_blocks)
    app.add_lexer("cql", SqlLexer)
