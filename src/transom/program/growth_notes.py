"""Notes about state that grows, for whoever is about to run the queries of a text."""

from __future__ import annotations

from collections.abc import Sequence

from transom.program.planned import Planned


def growth_notes(planned: Sequence[Planned]) -> list[str]:
    """A line for each thing that grows, with the line of the text in which its query begins."""
    return [
        f"note: line {one.statement.span.line}: {growth}" for one in planned if one.standing for growth in one.growing
    ]
