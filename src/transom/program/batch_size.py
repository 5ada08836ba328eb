"""How many rows a batch takes where each batch has a price of its own, whatever is in it.

While a query is behind, batches grow until that price is a small part of them. What a batch may take is about what can
be done in the time that it is to take; so when the query has caught up and only what has just come is to be done, a
burst does not keep it for longer than that. Nothing but time depends on this rule: the answer is the same for any cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from transom.core.schema import Schema

FIRST_ROWS: Final = 1 << 19
"""Of an input in the first batch, of which nobody knows what it will cost."""

BACKLOG_ROWS: Final = 1 << 21
"""The same where all there is has an end, and nobody waits for the first answers."""

LEAST_ROWS: Final = 1 << 12
MOST_ROWS: Final = 1 << 23
DEFAULT_ROWS: Final = 1 << 22
"""The most where the answer goes through the driver, whose memory is small."""

MOST_BYTES: Final = 1 << 29
"""Of an input in a batch, in memory at once: by what a source of files knows of its rows, or a guess at their width."""

WANTED_SECONDS: Final = 5.0
"""A batch of a query that is behind is to take so long, unless a latency is asked for: some ten times its own price."""

FASTEST: Final = 4
"""A batch is larger or smaller than the one before by this factor at most."""

_FULL: Final = 0.5
"""So full a batch says that there is more, or what more would cost."""

_BYTES: Final = {"string": 32, "binary": 32}


@dataclass(frozen=True)
class BatchSize:
    """`rows` are the most that the next batch takes of an input, and `most` are the most it ever may.

    >>> size = BatchSize(seconds=5.0)
    >>> [size := size.after(size.rows, seconds) for seconds in (9.0, 0.7, 2.5)][-1].rows == MOST_ROWS
    True
    >>> size.after(100, 0.4) == size, size.after(size.rows, 10.0).rows == size.rows // 2
    (True, True)
    """

    seconds: float = WANTED_SECONDS
    rows: int = FIRST_ROWS
    most: int = MOST_ROWS
    settled: bool = False
    """Whether there has been a full batch: the first one is slow because everything starts with it."""

    def after(self, rows: int, seconds: float) -> BatchSize:
        """A batch of so many rows of its largest input has taken so long."""
        if rows < _FULL * self.rows:
            return self
        factor = self.seconds / max(seconds, 1e-3) if self.settled else FASTEST
        grown = rows * min(max(factor, 1 / FASTEST), FASTEST)
        return BatchSize(self.seconds, int(min(max(grown, LEAST_ROWS), self.most)), self.most, settled=True)


def most_rows(schema: Schema) -> int:
    """How many rows of these columns a batch may have."""
    width = sum(_BYTES.get(str(kind), 8) for kind in schema.held().types)
    return max(min(MOST_ROWS, MOST_BYTES // max(width, 1)), LEAST_ROWS)
