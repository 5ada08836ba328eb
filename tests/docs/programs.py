"""The blocks that are programs, run in an empty folder in the order of the page.

- `python`: a doctest; all of a page share their names;
- `file NAME`: a file of that name;
- `console`: commands behind `$ `, and what they print. `transom ..` is run; of `make ..` it is checked that the target
  is there, and nothing may follow it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path
from typing import Any, Final

from tests.cli.commands import without_notices
from tests.docs.pages import ROOT, Block, Page, PageError
from transom.cli.main import main

_FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_programs(page: Page, folder: Path) -> None:
    """Everything on the page that is a program; raises PageError with the place of what is not as it says."""
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        for block in page.blocks:
            match block.words:
                case ("python",):
                    _run_python(page, block, names)
                case ("file", name):
                    path = folder / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(block.text, encoding="utf-8")
                case ("console",):
                    _run_console(page, block)


def _run_python(page: Page, block: Block, names: dict[str, Any]) -> None:
    example = doctest.DocTestParser().get_doctest(block.text, names, page.name, page.name, block.line)
    if not example.examples:
        raise PageError(f"{page.name}:{block.line}: Python is written behind >>>")
    reported: list[str] = []
    example.globs = names  # not a copy: the next block goes on with them
    doctest.DocTestRunner(optionflags=_FLAGS).run(example, out=reported.append, clear_globs=False)
    if reported:
        raise PageError("".join(reported))


def _run_console(page: Page, block: Block) -> None:
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    if parts[0] or len(parts) < 3:
        raise PageError(f"{page.name}:{block.line}: a command is written behind '$ '")
    for command, printed in zip(parts[1::2], parts[2::2], strict=True):
        program, *arguments = shlex.split(command)
        if program == "make":
            _check_make(page, block, arguments, printed)
        elif program == "transom":
            given = _printed_by(arguments)
            if given != printed:
                raise PageError(f"{page.name}:{block.line}: '{command}' prints:\n{given}")
        else:
            raise PageError(f"{page.name}:{block.line}: nobody runs '{program}'")


def _printed_by(arguments: list[str]) -> str:
    """What a command prints, results and messages together; what it says of where it runs depends on the machine."""
    paper = io.StringIO()
    with contextlib.redirect_stdout(paper), contextlib.redirect_stderr(paper), contextlib.suppress(SystemExit):
        main(arguments)
    return without_notices(paper.getvalue())


def _check_make(page: Page, block: Block, targets: list[str], printed: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        if printed or not re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE):
            raise PageError(f"{page.name}:{block.line}: make {target} is not there, or says more than is checked")
