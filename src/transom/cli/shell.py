"""The shell: statements one after the other, and the queries that run because of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from transom.cli.display import Display
from transom.cli.messages import message_of, say
from transom.cli.shell_queries import ShellQuery, reject_shared_sink
from transom.cli.shell_show import aligned, show
from transom.cli.shell_text import Command, read_command
from transom.connectors.terminal_sink import TerminalSink
from transom.core.emit_modes import Emit
from transom.core.errors import QueryError
from transom.plan.catalogue import (
    CreateStatement,
    DropStatement,
    ExplainStatement,
    KeptStatement,
    ShowStatement,
    SinkDefinition,
    StreamDefinition,
    TableDefinition,
)
from transom.program.interrupt import Terminated
from transom.program.planned import Planned
from transom.program.shown import shown
from transom.session import Session, workspace_of

HELP: Final = """\
A statement ends with a ; and may span several lines.

CREATE STREAM | TABLE | VIEW | SINK ..   declare an input, a view or an output
SELECT ..                                run a query and print its rows as they come; Ctrl-C stops it
INSERT INTO sink SELECT ..               run a query in the background
EXPLAIN [ANALYZE] query                  show the plan of a query, or run it and show what it did
SET option = value                       change an option; SHOW OPTIONS lists them
SHOW STREAMS | TABLES | VIEWS | SINKS | QUERIES | OPTIONS
STOP n | STOP ALL                        stop a query in the background, or all of them
HELP                                     this text
QUIT, or Ctrl-D                          quit; queries that still run are stopped"""


@dataclass(frozen=True)
class Manner:
    """How queries are run and rows are shown. `live`: for a person at a terminal. `starting`: what is shown until there
    is more of a query."""

    emit: Emit = "changes"
    style: str | None = None
    follow: bool = False
    live: bool = False
    starting: str = "starting"


class Shell:
    def __init__(self, manner: Manner, session: Session | None = None) -> None:
        self.session = session or Session()
        self.queries: list[ShellQuery] = []
        self.failed = False
        self._manner = manner
        self._screen = workspace_of(self.session).screen

    @property
    def running(self) -> list[ShellQuery]:
        return [query for query in self.queries if query.running]

    def execute(self, text: str) -> bool:
        """Execute one statement or command; False after the last one. What is wrong with it is reported."""
        try:
            command = read_command(text)
            if command is not None:
                return self._command(command)
            for planned in workspace_of(self.session).prepare(text):
                self._planned(planned)
        except BrokenPipeError:  # whoever reads the rows has seen enough
            raise
        except Exception as error:
            self._report_error(message_of(error))
        return True

    def wait(self) -> None:
        """Until all queries have ended by themselves."""
        for query in self.queries:
            query.wait()

    def stop(self) -> None:
        """Stop all queries, cleanly."""
        for query in self.running:
            query.stop()
        self.wait()

    # --- statements --------------------------------------------------------------------------------------------------

    def _planned(self, planned: Planned) -> None:
        if isinstance(planned.statement, ExplainStatement):
            self._screen.write(workspace_of(self.session).explained(planned) + "\n")
        elif isinstance(planned.statement, ShowStatement):
            self._screen.write(aligned(shown(planned.statement, planned.catalogue)) + "\n")
        elif isinstance(planned.statement, DropStatement):
            dropped = planned.statement.definition
            self._note("there was nothing to drop" if dropped is None else f"{dropped.name} is dropped")
        elif isinstance(planned.statement, KeptStatement):
            self._note(f"{planned.statement.definition.name} is declared already")
        elif isinstance(planned.statement, CreateStatement):
            self._note(f"{_kind(planned.statement)} {planned.statement.definition.name} is declared")
        elif planned.standing and planned.sink is not None:
            reject_shared_sink(planned.sink, self.queries)
            self._start(planned, None)
        elif planned.standing:
            self._foreground(planned)

    def _start(self, planned: Planned, display: Display | None) -> ShellQuery:
        number = len(self.queries) + 1
        manner = self._manner

        def answer(planned: Planned, name: str, schema: pa.Schema) -> TerminalSink:
            return TerminalSink(self._screen, f"query {number}", schema, manner.style, manner.follow, planned.view())

        name = f"query {number}" + ("" if planned.sink is None else f" into {planned.sink.name}")
        run = workspace_of(self.session).assemble(
            [planned], emit=manner.emit, follow=manner.follow, answer=answer, names=[name]
        )
        ended = self._ended if planned.sink is not None else lambda query: None
        query = ShellQuery(number, planned.statement.text, planned.sink, run, display, ended)
        self.queries.append(query)
        if planned.sink is not None:  # said before any of its rows can be
            self._note(f"query {number} runs in the background; STOP {number} ends it")
        query.start()
        return query

    def _foreground(self, planned: Planned) -> None:
        """A query whose rows are looked at: Ctrl-C stops it."""
        display = Display(self._screen, first=self._manner.starting) if self._manner.live else None
        if not self.running:
            self._screen.forget_speaker()
        ended: BaseException | None = None
        try:
            if display is not None:
                display.start()
            query = self._start(planned, display)
            while query.running:
                try:
                    query.wait()
                except (KeyboardInterrupt, Terminated) as error:
                    query.stop()
                    ended = error
        finally:
            if display is not None:
                display.end()
        self._ended(query)
        if isinstance(query.error, BrokenPipeError):
            raise query.error
        if ended is not None and (isinstance(ended, Terminated) or not self._manner.live):
            raise ended  # nobody is there to write the next statement

    def _ended(self, query: ShellQuery) -> None:
        if isinstance(query.error, BrokenPipeError):
            return
        if query.error is not None:
            self._report_error(query.outcome())
        elif self._manner.live:
            self._screen.write(query.outcome() + "\n")
        else:
            say(query.outcome())

    # --- commands ----------------------------------------------------------------------------------------------------

    def _command(self, command: Command) -> bool:
        match command.word:
            case "HELP":
                self._screen.write(HELP + "\n")
            case "SHOW":
                self._screen.write(show(command.what, workspace_of(self.session).catalogue, self.queries) + "\n")
            case "STOP":
                self._stop(command.what)
            case _:
                return False
        return True

    def _stop(self, what: str) -> None:
        running = {str(query.number): query for query in self.running}
        if what.upper() == "ALL" or (not what and len(running) == 1):
            chosen = list(running.values())
        elif what in running:
            chosen = [running[what]]
        else:
            commands = [f"STOP {number}" for number in running]
            raise QueryError(
                f"no query {what} runs" if what else "STOP does not say which query",
                remedy=f"write {' or '.join([*commands, 'STOP ALL'])}"
                if commands
                else "SHOW QUERIES says which ones run",
            )
        for query in chosen:
            query.stop()
        for query in chosen:
            query.wait()

    def _note(self, text: str) -> None:
        """Said to a person only."""
        if self._manner.live:
            self._screen.write(text + "\n")

    def _report_error(self, text: str) -> None:
        self.failed = True
        if self._manner.live:
            self._screen.write(text + "\n")
        else:
            say(text)


def _kind(statement: CreateStatement) -> str:
    match statement.definition:
        case StreamDefinition():
            return "stream"
        case TableDefinition():
            return "table"
        case SinkDefinition():
            return "sink"
    return "view"
