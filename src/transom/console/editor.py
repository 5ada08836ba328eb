"""What the editor of the page asks: whether a text is right, how it would run, its first rows; and to run it.

Without leave to change anything a text may only ask, of inputs that are declared: so no request names a file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from transom.console.board import SessionBoard
from transom.core.errors import QueryError, TransomError
from transom.core.text import visible
from transom.cql.statements import parse_statements
from transom.plan.algebra import StreamScan, TableScan
from transom.plan.catalogue import (
    Catalogue,
    ExplainStatement,
    InsertStatement,
    QueryStatement,
    SetStatement,
    ShowStatement,
)
from transom.plan.reads import nodes
from transom.program.growth_notes import growth_notes
from transom.program.live_answer import MOST_SHOWN, cells
from transom.program.planned import Planned, read_program
from transom.program.workspace import Workspace

if TYPE_CHECKING:
    from transom.session import Session

PREVIEWED: Final = 500
"""Rows of each input."""

MOST_COMBINED: Final = 1_000_000
"""And so few of them that if each meets all of the others these are not more than that."""

_PATIENCE: Final = 10.0


class _Turns:
    """One thing after the other, with rests between them that are so many `times` as long.

    It works in the process of the queries, which have the time of the rests: whoever asks all the time takes no more.
    """

    def __init__(self, times: float, patience: float, busy: str) -> None:
        self._times, self._patience, self._busy = times, patience, busy
        self._lock = threading.Lock()
        self._rested = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self._patience):
            raise QueryError(self._busy, remedy="ask again in a while")
        try:
            time.sleep(max(self._rested - time.monotonic(), 0.0))
            began = time.thread_time()
            try:
                yield
            finally:
                self._rested = time.monotonic() + self._times * (time.thread_time() - began)
        finally:
            self._lock.release()


class Editor:
    """The editor of a session; None where there is none to ask, of a run or of a checkpoint."""

    def __init__(self, session: Session, workspace: Workspace, board: SessionBoard) -> None:
        self._session = session
        self._workspace = workspace
        self._board = board
        self._checks = _Turns(3.0, _PATIENCE, "other texts are being checked")
        self._previews = _Turns(1.0, 0.0, "another preview is under way")

    def check(self, text: str, changes: bool) -> dict[str, Any]:
        """Whether it is right; how its queries would run, and what would grow.

        Long texts take seconds, which many at a time would take from the queries that run.
        """
        with self._checks.turn():
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
        with self._checks.turn():
            rows_read = _rows_to_read(self._read(text, changes))
        with self._previews.turn():
            started = time.monotonic()
            result = self._session.preview(text, rows=rows_read)
            table = result.to_arrow()
            rows = [row for batch in table.slice(0, MOST_SHOWN).to_batches() for row in cells(batch)]
            return {
                "ok": True,
                "columns": table.column_names,
                "rows": rows,
                "count": table.num_rows,
                "read": rows_read,
                "seconds": time.monotonic() - started,
            }

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


def _rows_to_read(planned: Sequence[Planned]) -> int:
    """Of each input; a join of many, which may have no condition, has few of each."""
    queries = [one.statement.query for one in planned if isinstance(one.statement, InsertStatement | QueryStatement)]
    scans = [sum(isinstance(node, StreamScan | TableScan) for node in nodes(query)) for query in queries]
    most: float = MOST_COMBINED ** (1 / max(1, *scans, 1))
    return min(PREVIEWED, round(most))


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
