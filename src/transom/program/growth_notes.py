"""Notes about state that grows and about what changes nothing, for whoever is about to run the queries of a text."""

from __future__ import annotations

from collections.abc import Sequence

from transom.program.planned import Planned


def growth_notes(planned: Sequence[Planned]) -> list[str]:
    """A line for each of them, with the line of the text in which the statement begins."""
    return [
        f"note: line {query.statement.span.line}: {note}"
        for query in planned
        for note in (*query.statement.notes, *(query.growing if query.standing else ()))
    ]
