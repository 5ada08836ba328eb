"""`%%cql`: the statements of a cell, run by the session of the notebook."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, Final, NoReturn

from transom.core.emit_modes import EMITS
from transom.core.errors import OptionError, TransomError
from transom.notebook.live_display import LiveDisplay, Running, Show
from transom.program.live_answer import LiveView
from transom.program.result import Results
from transom.program.streaming_query import StreamingQuery
from transom.session import Session, workspace_of

_SESSION: Final = "session"


def register(shell: Any) -> None:
    """Called by `%load_ext transom`."""

    def show(thing: Any) -> Any:
        from IPython.display import display

        return display(thing, display_id=True)  # type: ignore[no-untyped-call]

    def cql(line: str, cell: str) -> Results | StreamingQuery | None:
        """%%cql [--live] [--follow] [--name NAME] [--emit MODE] [--session NAME]: see docs/console.md."""
        return run_cell(line, cell, shell.user_ns, show)

    shell.register_magic_function(cql, magic_kind="cell", magic_name="cql")


def run_cell(line: str, cell: str, names: dict[str, Any], show: Show) -> Results | StreamingQuery | None:
    """The results of the statements; with --live the query that has begun, shown while it runs."""
    options = _parser().parse_args(shlex.split(line))
    session = _session(names, options.session)
    if options.live:
        workspace_of(session).taps.watch()
        query = session.start(cell, name=options.name, emit=options.emit, follow=options.follow)
        LiveDisplay(query, LiveView(workspace_of(session).taps.answers[query.name]), show)
        return query
    running = Running(show)
    return workspace_of(session).execute(cell, emit=options.emit, watch=running.watch, when_over=running.end)


def _session(names: dict[str, Any], name: str) -> Session:
    session = names.setdefault(name, None)
    if session is None:
        session = names[name] = Session()
    if not isinstance(session, Session):
        raise OptionError(f"'{name}' is no session here", remedy="write --session and the name of one")
    return session


class _LineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise TransomError(f"%%cql: {message}", remedy="write %%cql [--live] [--follow] [--name NAME] [--emit MODE]")


def _parser() -> argparse.ArgumentParser:
    parser = _LineParser(prog="%%cql", add_help=False)
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--name")
    parser.add_argument("--emit", choices=EMITS, default="changes")
    parser.add_argument("--session", default=_SESSION)
    return parser
