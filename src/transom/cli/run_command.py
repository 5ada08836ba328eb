"""`transom run`: the queries of a file, run together."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from transom.cli.display import Display
from transom.cli.query_file import folder_of, read_query_file, read_settings
from transom.cli.summary import summary
from transom.connectors.open import is_terminal
from transom.connectors.terminal_sink import TerminalSink
from transom.plan.catalogue import ExplainStatement
from transom.program.growth_notes import growth_notes
from transom.program.planned import Planned
from transom.program.run import EVERY, Run
from transom.session import Session

STARTING: Final = {"local": "starting", "spark": "starting Spark"}
"""What the display says until there is more to tell."""


def main(options: argparse.Namespace) -> int:
    text = read_query_file(options.file)
    fixed = read_settings(options.set)
    checkpoint, side = _absolute(options.checkpoint), _absolute(options.side)
    with folder_of(options.file), Session(runtime=options.runtime, cores=options.cores) as session:
        planned = session.prepare(text, fixed)
        standing = [one for one in planned if one.standing]
        for note in growth_notes(standing):
            print(note, file=sys.stderr)
        if standing:
            session.begin()
        for one in planned:
            if isinstance(one.statement, ExplainStatement):
                print(session.explained(one))
        screen = session.screen
        screen.several = sum(one.sink is None or is_terminal(one.sink) for one in standing) > 1

        def answer(one: Planned, name: str, schema: pa.Schema) -> TerminalSink:
            return TerminalSink(screen, name, schema, options.format, options.follow)

        def assemble() -> Run:
            return session.assemble(
                standing,
                emit=options.emit,
                follow=options.follow,
                checkpoint=checkpoint,
                every=options.every or EVERY,
                side=side,
                keep_refused=False,
                answer=answer,
            )

        _run(assemble, Display(screen, shown=not options.plain, first=STARTING[options.runtime]), options)
    return 0


def _run(assemble: Callable[[], Run], display: Display, options: argparse.Namespace) -> None:
    """Tells how it went, however it ended, unless an error says so."""
    run: Run | None = None
    try:
        with display:
            run = assemble()
            run.run(display.watch)
    except KeyboardInterrupt:
        _tell(run)
        if options.checkpoint is not None:
            print(f"to go on from here: {shlex.join(['transom', *options.arguments])}", file=sys.stderr)
        raise
    _tell(run)


def _tell(run: Run | None) -> None:
    sys.stdout.flush()
    if run is not None and run.queries:
        print(summary(run.status()), file=sys.stderr)


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)
