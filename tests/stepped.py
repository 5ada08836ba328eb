"""Queries of the local runtime, to be stepped, saved and restored by hand."""

from __future__ import annotations

from transom import Session
from transom.core.emit_modes import Emit
from transom.runtimes.local.query import LocalQuery
from transom.session import workspace_of


def stepped(session: Session, text: str, emit: Emit = "changes") -> LocalQuery:
    """The one query of a text, ready to run."""
    (query,) = workspace_of(session).assemble(workspace_of(session).prepare(text, one_query=True), emit=emit).queries
    assert isinstance(query, LocalQuery)
    return query
