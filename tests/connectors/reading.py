"""Reading a source to its end in steps, as the tests of all sources do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from transom.connectors.connector import Source
from transom.connectors.source import Position


@dataclass(frozen=True)
class Everything:
    rows: list[dict[str, Any]]
    rejected: list[dict[str, str]]
    positions: list[Position]

    @property
    def reasons(self) -> list[str]:
        return [row["reason"] for row in self.rejected]


def read_all(
    source: Source, position: Position | None = None, *, step: int = 1000, growing: bool = False
) -> Everything:
    """All rows from a position on, `step` at a time; every position goes through JSON as a checkpoint would make it."""
    everything = Everything([], [], [])
    at = position or {}
    while True:
        batch = source.read(at, step, growing=growing)
        assert len(batch.rows) + len(batch.rejected) <= step
        everything.rows.extend(batch.rows.to_pylist())
        everything.rejected.extend(batch.rejected.to_pylist())
        at = json.loads(json.dumps(batch.position))
        everything.positions.append(at)
        if batch.ended:
            return everything
