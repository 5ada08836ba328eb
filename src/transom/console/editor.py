"""What the editor of the page asks: whether a text is right, how it would run, its first rows; and to run it.

Without leave to change anything a text may only ask, of inputs that are declared: so no request names a file.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from transom.console.board import SessionBoard
from transom.core.errors import QueryError, TransomError
from transom.core.text import visible
from transom.cql.statements import parse_statements
from transom.plan.catalogue import (
    Catalogue,
    ExplainStatement,
    InsertStatement,
    QueryStatement,
    SetStatement,
    ShowStatement,
)
from transom.program.growth_notes import growth_notes
from transom.program.live_answer import MOST_SHOWN, cells
from transom.program.planned import Planned, read_program
from transom.program.workspace import Workspace

if TYPE_CHECKING:
    from transom.session import Session

PREVIEWED: Final = 500


class Editor:
    """The editor of a session; None where there is none to ask, of a run or of a checkpoint."""

    def __init__(self, session: Session, workspace: Workspace, board: SessionBoard) -> None:
        self._session = session
        self._workspace = workspace
        self._board = board
        self._one_at_a_time = threading.Lock()
        self._one_check_at_a_time = threading.Lock()

    def check(self, text: str, changes: bool) -> dict[str, Any]:
        """Whether it is right; how its queries would run, and what would grow.

        Long texts take seconds, which many at a time would take from the queries that run.
        """
        with self._one_check_at_a_time:
            planned = self._read(text, changes)
            explained = self._workspace.explain_together(planned)
        return {
            "ok": True,
            "queries": sum(query.standing for query in planned),
            "notes": growth_notes(planned),
            "explain": str(explained),
            "plans": list(explained.plans),
        }

    def preview(self, text: str, changes: bool) -> dict[str, Any]:
        """The answer over the first rows of the inputs."""
        self._read(text, changes)
        if not self._one_at_a_time.acquire(blocking=False):
            raise QueryError("another preview is under way", remedy="ask again when it is over")
        try:
            started = time.monotonic()
            result = self._session.preview(text, rows=PREVIEWED)
            table = result.to_arrow()
            rows = [row for batch in table.slice(0, MOST_SHOWN).to_batches() for row in cells(batch)]
            return {
                "ok": True,
                "columns": table.column_names,
                "rows": rows,
                "count": table.num_rows,
                "read": PREVIEWED,
                "seconds": time.monotonic() - started,
            }
        finally:
            self._one_at_a_time.release()

    def start(self, text: str, name: str | None, follow: bool, together: bool) -> dict[str, Any]:
        """Start the query of a text; with `together` beside those that run, with which it shares a join if it can."""
        if together:
            query = self._session.add(text, name=name, follow=follow)
        else:
            query = self._session.start(text, name=name, follow=follow)
        self._board.show(query)
        return {"ok": True, "name": query.name}

    def stop(self, name: str) -> dict[str, Any]:
        self._board.stop(name)
        return {"ok": True}

    def relations(self) -> list[dict[str, Any]]:
        """What a text can speak of."""
        catalogue = self._workspace.catalogue
        listed = []
        for relation in catalogue.relations.values():
            columns = getattr(relation, "columns", None) or relation.query.schema  # type: ignore[union-attr]
            listed.append({"name": relation.name, "columns": [column.name for column in columns]})
        return listed[:200]

    def _read(self, text: str, changes: bool) -> list[Planned]:
        catalogue = replace(self._workspace.catalogue)
        if not changes:
            _reject_changes(text, catalogue)
        statistics = self._workspace.statistics()
        return read_program(text, catalogue, statistics_of=statistics)


def _reject_changes(text: str, catalogue: Catalogue) -> None:
    """Reject statements that change something, before anything of the text is opened."""
    with_text = Catalogue(
        dict(catalogue.relations), dict(catalogue.sinks), dict(catalogue.options), functions=catalogue.functions
    )
    for statement in parse_statements(text, with_text):
        spills = isinstance(statement, SetStatement) and statement.option == "spill"
        if spills or not isinstance(statement, _ASKS):
            raise QueryError(
                "this page may look, and change nothing",
                remedy="write SELECT over what is declared, or start the console with --allow-changes",
                span=statement.span,
                text=text,
            )


_ASKS = QueryStatement | InsertStatement | ExplainStatement | ShowStatement | SetStatement


def error_json(error: TransomError) -> dict[str, Any]:
    """What is wrong and where, for whoever marks it in a text."""
    span = error.span
    return {
        "ok": False,
        "what": visible(error.what),
        "remedy": None if error.remedy is None else visible(error.remedy, keep="\n"),
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "length": None if span is None else span.length,
    }
