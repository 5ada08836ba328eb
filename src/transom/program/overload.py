"""How queries are doing whose work is put in order: what was done for them, what waits, and what was lost."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from transom.core.schema import TIMESTAMP
from transom.core.time import format_instant


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


SHED_ROWS = pa.schema([("first", TIMESTAMP), ("last", TIMESTAMP), ("rows", pa.int64())])
