"""`transom run`: the queries of a file, run together."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Final

import pyarrow as pa

from transom.cli.display import Display
from transom.cli.messages import say
from transom.cli.notices import compiling_announced, notice, say_where
from transom.cli.query_file import UsageError, absolute, confinement, folder_of, read_query_file, read_settings
from transom.cli.shell_show import aligned
from transom.cli.summary import summary
from transom.cli.watching import Watching
from transom.connectors.open import is_terminal
from transom.connectors.terminal_sink import TerminalSink
from transom.console.finished import remember
from transom.console.open import require, run_console
from transom.core.text import visible
from transom.monitoring.watched import RunWatch
from transom.plan.catalogue import ExplainStatement, ShowStatement
from transom.program.growth_notes import growth_notes
from transom.program.interrupt import Terminated
from transom.program.planned import Planned
from transom.program.run import EVERY, Run, until_full
from transom.program.shown import shown
from transom.program.silence_notes import silence_notes
from transom.session import Session, workspace_of

STARTING: Final = {"local": "starting", "spark": "starting Spark"}
"""What the display says until there is more to say."""


def main(options: argparse.Namespace) -> int:
    if options.end is False and options.checkpoint is None:
        raise UsageError(
            "--once leaves time open for the next run, and there is no checkpoint for it to resume from",
            remedy="give --checkpoint DIR, or leave --once out",
        )
    text = read_query_file(options.file)
    fixed = read_settings(options.set)
    checkpoint, dead_letters, within = (
        absolute(options.checkpoint),
        absolute(options.dead_letters),
        confinement(options.within),
    )
    watching = Watching.of(options)
    with folder_of(options.file), Session(runtime=options.runtime, cores=options.cores, within=within) as session:
        watching.serve(session)
        planned = workspace_of(session).prepare(text, fixed, checkpoint=checkpoint)
        standing = [query for query in planned if query.standing]
        for note in (*growth_notes(planned), *(silence_notes(planned) if options.follow else ())):
            say(visible(note))
        if any(query.root is not None for query in planned):
            say_where(options, runs=any(query.standing or _analyzed(query) for query in planned))
        if standing:
            workspace_of(session).begin()
        for query in planned:
            if isinstance(query.statement, ExplainStatement):
                print(workspace_of(session).explained(query))
            elif isinstance(query.statement, ShowStatement):
                print(aligned(shown(query.statement, query.catalogue)))
        screen = workspace_of(session).screen
        screen.several = sum(query.sink is None or is_terminal(query.sink) for query in standing) > 1

        def answer(planned: Planned, name: str, schema: pa.Schema) -> TerminalSink:
            return TerminalSink(screen, name, schema, options.format, options.follow, planned.view())

        if options.console is not None:
            require()
            workspace_of(session).taps.watch()

        def assemble() -> Run:
            return workspace_of(session).assemble(
                standing,
                emit=options.emit,
                follow=options.follow,
                checkpoint=checkpoint,
                end=options.end,
                every=options.every or EVERY,
                dead_letters=dead_letters,
                keep_dead_letters=False,
                answer=answer,
            )

        display = Display(screen, shown=not options.plain and not watching.logs_here, first=STARTING[options.runtime])
        with compiling_announced(display.announce), watching.over(session, silent=not display.shown) as seen:
            about = {"address": options.console, "checkpoint": checkpoint}
            around = partial(_console, planned=standing, session=session, **about)
            _run(assemble, display, seen, options, around)
    return 0


def _analyzed(planned: Planned) -> bool:
    return isinstance(planned.statement, ExplainStatement) and planned.statement.analyze


@contextmanager
def _console(
    run: Run, planned: Sequence[Planned], session: Session, address: str | None, checkpoint: str | None
) -> Iterator[None]:
    """Within it the run can be looked at, if it is to be; and afterwards in its checkpoint."""
    if address is None:
        yield
        return
    console = run_console(run, planned, workspace_of(session), address, session.kept_of)
    try:
        with console:
            notice(f"console at {console.url}")
            yield
    finally:
        if checkpoint is not None:
            remember(checkpoint, console.feed)


def _run(
    assemble: Callable[[], Run],
    display: Display,
    seen: RunWatch,
    options: argparse.Namespace,
    around: Callable[[Run], AbstractContextManager[None]],
) -> None:
    """Says how it went, however it ended, unless an error says so."""
    run: Run | None = None
    had_ended = False
    try:
        with display, seen:
            run = assemble()
            had_ended = bool(run.queries) and run.finished
            seen.run = run
            with around(run):
                run.run(until_full(display.watch))
    except (KeyboardInterrupt, Terminated):
        _report(run)
        if options.checkpoint is not None:
            say(f"to resume from here: {visible(shlex.join(['transom', *options.arguments]))}")
        raise
    _report(run)
    if had_ended:
        say("nothing was left to do: the input ended in an earlier run")


def _report(run: Run | None) -> None:
    sys.stdout.flush()
    if run is not None and run.queries:
        say(summary(run.status()))
