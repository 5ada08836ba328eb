"""`transom run`: the queries of a file, run together."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from transom.cli.answers import Page, Printed
from transom.cli.query_file import folder_of, read_query_file, read_settings
from transom.cli.summary import progress_line, summary
from transom.plan.catalogue import ExplainStatement
from transom.runtimes.local.program import Planned
from transom.runtimes.local.run import EVERY, LocalRun
from transom.session import Session

_SECONDS_BETWEEN_LINES: Final = 0.1


def main(options: argparse.Namespace) -> int:
    text = read_query_file(options.file)
    fixed = read_settings(options.set)
    checkpoint, side = _absolute(options.checkpoint), _absolute(options.side)
    with folder_of(options.file):
        session = Session()
        planned = session.prepare(text, fixed)
        for one in planned:
            if isinstance(one.statement, ExplainStatement):
                print(session.explained(one))
        standing = [one for one in planned if one.standing]
        bare = [one for one in standing if one.sink is None]
        page = Page(options.format, several=len(bare) > 1)

        def answer(one: Planned, name: str, schema: pa.Schema) -> Printed:
            return Printed(page, name, schema, options.follow)

        run = session.start(
            standing,
            emit=options.emit,
            follow=options.follow,
            checkpoint=checkpoint,
            every=options.every or EVERY,
            side=side,
            keep_refused=False,
            answer=answer,
        )
        _run(run, quiet=bool(bare) and page.out.isatty())
    return 0


def _run(run: LocalRun, quiet: bool) -> None:
    """Tells how it went, however it ended, unless an error says so."""
    try:
        with _progress(quiet) as watch:
            run.run(watch)
    except KeyboardInterrupt:
        _tell(run)
        raise
    _tell(run)


def _tell(run: LocalRun) -> None:
    sys.stdout.flush()
    if run.queries:
        print(summary(run.status()), file=sys.stderr)


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[LocalRun], None]]:
    """A line that is renewed in its place, if anybody sees it."""
    if quiet or not sys.stderr.isatty():
        yield lambda run: None
        return
    from rich.console import Console

    last = 0.0
    with Console(stderr=True).status("starting") as line:

        def watch(run: LocalRun) -> None:
            nonlocal last
            if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                line.update(progress_line(run.status()))

        yield watch


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)
