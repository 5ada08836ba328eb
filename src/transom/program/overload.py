"""How queries are doing whose work is put in order: what was done for them, what waits, and what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.schema import TIMESTAMP
from transom.core.time import FOREVER, format_instant
from transom.kernels.columns import fixed_array


@dataclass(frozen=True)
class OverloadStatus:
    """Rows of both sides, each counted once for the query: due = processed + shed + pending, at every moment.

    `partial` is there if rows were shed: the first instant of which something may be missing in the answer, and the
    first from which on it is exact again. `shed_rows` has the instants of the rows that were (`first` to `last`, so
    many `rows`); `loads` what was measured every half second of this process: rows that came, the load and the
    threshold that it was compared with, beta, and the method from there on.

    >>> none = pa.table({})
    >>> print(OverloadStatus("mqt", "mqt", "shed", 5, 3, 1, 1, (0, 9_000_000), none, none))
    by mqt: 5 due = 3 processed + 1 shed + 1 pending; partial from 1970-01-01 00:00:00 to 1970-01-01 00:00:09
    """

    policy: str
    method: str
    on_overload: str
    due: int
    processed: int
    shed: int
    pending: int
    partial: tuple[int, int] | None
    shed_rows: pa.Table
    loads: pa.Table

    def __str__(self) -> str:
        counts = f"{self.due:,} due = {self.processed:,} processed + {self.shed:,} shed + {self.pending:,} pending"
        text = f"by {self.policy}: {counts}"
        if self.partial is None:
            return text
        first, last = (format_instant(instant) for instant in self.partial)
        return f"{text}; partial from {first} to {last}"


def overload_of_query(
    *,
    policy: str,
    method: str,
    on_overload: str,
    ledger: Sequence[int],
    shed: tuple[Int64s, Int64s, Int64s],
    longest: int,
    loads: Mapping[str, Sequence[Any]],
) -> OverloadStatus:
    """`ledger` is due, processed, shed and pending; `shed` has first, last and number of what was lost; `longest` is
    the largest window of the query."""
    first, last, rows = shed
    due, processed, lost, pending = ledger
    partial = (int(first[0]), min(FOREVER, int(last.max()) + longest)) if len(first) else None
    times = [fixed_array(TIMESTAMP, column, None) for column in (first, last)]
    return OverloadStatus(
        policy=policy,
        method=method,
        on_overload=on_overload,
        due=due,
        processed=processed,
        shed=lost,
        pending=pending,
        partial=partial,
        shed_rows=pa.Table.from_arrays([*times, pa.array(rows)], schema=SHED_ROWS),
        loads=pa.table({name: list(column) for name, column in loads.items()}),
    )


SHED_ROWS = pa.schema([("first", TIMESTAMP), ("last", TIMESTAMP), ("rows", pa.int64())])
