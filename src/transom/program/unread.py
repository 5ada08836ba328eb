"""Inputs that are complete: whatever they have brought since then would never be read, and nobody would know."""

from __future__ import annotations

from transom.connectors.connector import Limits, Source
from transom.connectors.source import Position
from transom.core.errors import CheckpointError
from transom.pipeline.input_gates import came_after_the_end
from transom.plan.catalogue import StreamDefinition
from transom.program.inputs import Definition


def reject_grown(definition: Definition, source: Source, position: Position) -> None:
    """Raise if an input of which all had been read, up to a position, has more by now."""
    if not source.plan(position, Limits(rows=1)).splits:
        return
    if definition.time is not None:
        kind = "stream" if isinstance(definition, StreamDefinition) else "table"
        raise came_after_the_end(f"{kind} '{definition.name}'")
    raise CheckpointError(
        f"table '{definition.name}' never changes, and there are rows of it now that were not read",
        remedy="take them out again, or give the table a time column and changes (CREATE TABLE .. WATERMARK FOR ..); "
        "to read it anew, start with an empty checkpoint folder",
    )
