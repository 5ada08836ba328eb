"""`transom run`: the queries of a file, run together."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

import pyarrow as pa

from transom.cli.display import Display
from transom.cli.query_file import folder_of, read_query_file, read_settings
from transom.cli.summary import summary
from transom.connectors.open import is_terminal
from transom.connectors.terminal_sink import TerminalSink
from transom.plan.catalogue import ExplainStatement
from transom.program.planned import Planned
from transom.runtimes.local.run import EVERY, LocalRun
from transom.session import Session


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
        screen = session.screen
        screen.several = sum(one.sink is None or is_terminal(one.sink) for one in standing) > 1

        def answer(one: Planned, name: str, schema: pa.Schema) -> TerminalSink:
            return TerminalSink(screen, name, schema, options.format, options.follow)

        run = session.assemble(
            standing,
            emit=options.emit,
            follow=options.follow,
            checkpoint=checkpoint,
            every=options.every or EVERY,
            side=side,
            keep_refused=False,
            answer=answer,
        )
        _run(run, None if options.plain else Display(screen), options)
    return 0


def _run(run: LocalRun, display: Display | None, options: argparse.Namespace) -> None:
    """Tells how it went, however it ended, unless an error says so."""
    try:
        if display is None:
            run.run()
        else:
            display.start()
            try:
                run.run(display.watch)
            finally:
                display.end()
    except KeyboardInterrupt:
        _tell(run)
        if options.checkpoint is not None:
            print(f"to go on from here: {shlex.join(['transom', *options.arguments])}", file=sys.stderr)
        raise
    _tell(run)


def _tell(run: LocalRun) -> None:
    sys.stdout.flush()
    if run.queries:
        print(summary(run.status()), file=sys.stderr)


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)
