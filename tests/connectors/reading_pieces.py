"""Reading a source in pieces, as tasks on several machines would, beside reading it with `read`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from transom.connectors.pieces import Piece, PiecewiseSource, Reach
from transom.connectors.source import Position, Source, SourceBatch, rejected_batch


class BothWays(Source, PiecewiseSource, Protocol):
    """A source that can be read in both ways."""


@dataclass(frozen=True)
class Read:
    rows: list[dict[str, Any]]
    rejected: list[dict[str, str]]
    position: Position
    ended: bool
    over: bool


def of_batch(batch: SourceBatch) -> Read:
    return Read(batch.rows.to_pylist(), batch.rejected.to_pylist(), batch.position, batch.ended, batch.over)


def of_reach(reach: Reach, reader: PiecewiseSource, pieces: Iterable[Piece] | None = None) -> Read:
    """The pieces of a reach, or the given ones instead, read one after the other by some other source."""
    rows: list[dict[str, Any]] = []
    rejected: list[dict[str, str]] = []
    for piece in reach.pieces if pieces is None else pieces:
        told = Piece.unpacked(json.loads(json.dumps(piece.packed())))
        assert told == piece
        count = len(rows) + len(rejected)
        for chunk in reader.read_piece(told):
            assert isinstance(chunk.rows, pa.RecordBatch)
            rows += chunk.rows.to_pylist()
            rejected += rejected_batch(chunk.rejected).to_pylist()
        assert len(rows) + len(rejected) - count == piece.rows > 0
    return Read(rows, rejected, json.loads(json.dumps(reach.position)), reach.ended, reach.over)


def agree(make: Callable[[], BothWays], max_rows: int, position: Position, *, growing: bool = False) -> Read:
    """Reads from a position to the end in both ways, each batch compared with its twin; all of it in one."""
    reading, planning, executing = make(), make(), make()
    rows: list[dict[str, Any]] = []
    rejected: list[dict[str, str]] = []
    while True:
        expected = of_batch(reading.read(position, max_rows, growing=growing))
        found = of_reach(planning.reach(position, max_rows=max_rows, growing=growing), executing)
        assert found == expected
        rows += found.rows
        rejected += found.rejected
        position = found.position
        if found.ended:
            return Read(rows, rejected, position, True, found.over)
