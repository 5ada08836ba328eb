"""The way out of a join of sliding windows: rows slide by slide, and markers where results may be put off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.delta import StreamDelta, no_int64s
from transom.core.errors import EvaluationError
from transom.kernels.columns import empty_batch
from transom.kernels.keys import encode_keys, normalised
from transom.kernels.slide_join.sorted_run import held_bytes

COMPLETE: Final = "complete"
INCOMPLETE: Final = "incomplete"
MOST_ROWS: Final = 1 << 26

Emit = Callable[[StreamDelta], None]


class Outlet:
    """Rows go to `emit_rows` whenever there are `most` bytes of them; without it they are all given in the end.

    Where a slide is given as a whole its rows are in the order of their values.
    """

    def __init__(self, schema: pa.Schema, marked: bool, most: int, emit_rows: Emit | None) -> None:
        self._schema = schema
        self._row = pa.schema(list(schema)[2 * marked :])
        self._floating = any(map(pa.types.is_floating, schema.types))
        self._marked = marked
        self._most = most
        self._emit_rows = emit_rows
        self._slide: list[pa.RecordBatch] = []
        self._parts: list[tuple[int, int, str | None, pa.RecordBatch]] = []
        self._rows = 0
        self.bytes = 0
        self.held = 0
        """Bytes of rows that were not emitted yet, whether their slide is over or not."""
        self.frontier = 0

    @property
    def gathers(self) -> bool:
        """Whether rows stay here until the step is over."""
        return self._emit_rows is None

    def add(self, at: int, attempt: int, rows: pa.RecordBatch) -> None:
        self._rows += len(rows)
        if self._floating:
            rows = pa.RecordBatch.from_arrays(normalised(rows.columns), schema=rows.schema)
        if self._emit_rows is not None:
            self._put(at, attempt, None, rows)
            return
        self.held += held_bytes(rows)
        if self._rows > MOST_ROWS:
            raise EvaluationError(
                f"RSTREAM would emit more than {MOST_ROWS:,} rows in one step",
                remedy="SET batch_rows to a smaller number, or write a longer SLIDE",
            )
        self._slide.append(rows)

    def end(self, at: int, attempt: int, status: str | None) -> None:
        """No more rows of this attempt for now; with a status, for good."""
        if self._slide:
            rows = pa.concat_batches(self._slide)
            self._slide = []
            keys = encode_keys(rows.columns, len(rows))
            buffers = [None, pa.py_buffer(keys.offsets), pa.py_buffer(keys.data)]
            order = pc.sort_indices(pa.Array.from_buffers(pa.large_binary(), len(rows), buffers))
            self._put(at, attempt, None, rows.take(order))
        if self._marked and status is not None:
            nothing = [pa.nulls(1, field.type) for field in self._row]
            self._put(at, attempt, status, pa.RecordBatch.from_arrays(nothing, schema=self._row))

    def given(self) -> StreamDelta:
        """What has not been emitted."""
        parts, self._parts, self.bytes = self._parts, [], 0
        if not parts:
            return StreamDelta(empty_batch(self._schema), no_int64s(), self.frontier)
        rows = pa.concat_batches([part for *_, part in parts])
        sizes = [len(part) for *_, part in parts]
        t = np.repeat(np.array([part[0] for part in parts], dtype=np.int64), sizes)
        if self._marked:
            attempts = np.repeat(np.array([part[1] for part in parts], dtype=np.int64), sizes)
            emitted = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
            statuses = pa.array([part[2] for part in parts], pa.string()).take(pa.array(emitted))
            rows = pa.RecordBatch.from_arrays([pa.array(attempts), statuses, *rows.columns], schema=self._schema)
        return StreamDelta(rows, t, self.frontier)

    def _put(self, at: int, attempt: int, status: str | None, rows: pa.RecordBatch) -> None:
        self._parts.append((at, attempt, status, rows))
        self.bytes += held_bytes(rows)
        if self._emit_rows is not None and self.bytes >= self._most:
            self._emit_rows(self.given())
