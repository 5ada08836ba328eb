"""The experiment of paper 4, section 3: its streams, queries and rows.

| experiment | what changes |
| --- | --- |
| size | the rows of a stream in a basic window, at a selectivity of 0.05 |
| selectivity | the share of all pairs of rows that match, with 1,500 rows in a basic window |

Two streams, and four basic windows in a window: `RANGE 4 SECONDS SLIDE 1 SECOND`, a basic window a second. Selectivity
is read as the paper's words have it, results divided by the product of the windows: keys are drawn uniformly, and there
are as many as make it so. At 0.05 there are 20 keys, and with 1,500 rows a slide has 6,000 x 6,000 / 20 results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s

STREAMS: Final = ("a", "b")
BASIC_WINDOWS: Final = 4
MB: Final = 1 << 20
_SECOND: Final = 1_000_000

Slide = list[tuple[str, pa.RecordBatch]]
"""What a basic window brings: rows of each stream."""


@dataclass(frozen=True)
class Cell:
    """`rows` are those of one stream in a basic window; `filler` is how many bytes of text a row has besides.

    The budget is in MB, the speed of the disk in MB a second; MB are those of SET, 2^20 bytes. The answer goes to files
    of a format (`sink`), or to a function.
    """

    experiment: str
    rows: int
    selectivity: float
    budget_mb: float
    disk_mb_s: float
    filler: int = 0
    sink: str = ""

    @property
    def x(self) -> float:
        """What the experiment changes."""
        return self.selectivity if self.experiment == "selectivity" else self.rows

    def __str__(self) -> str:
        return f"{self.experiment}, {self.x:,g}"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "x": self.x, "keys": self.keys}

    @property
    def keys(self) -> int:
        return max(round(1 / self.selectivity), 1)

    @property
    def results(self) -> float:
        """Of a slide."""
        return (BASIC_WINDOWS * self.rows) ** 2 / self.keys

    @property
    def settings(self) -> str:
        return f"SET memory = '{self.budget_mb:g} MB'; SET disk_speed = '{self.disk_mb_s:g} MB';"

    @property
    def query(self) -> str:
        window = f"[RANGE {BASIC_WINDOWS} SECONDS SLIDE 1 SECOND]"
        text = "a.g, " if self.filler else ""
        return f"RSTREAM(SELECT a.k, a.x, {text}b.x AS y FROM a {window}, b {window} WHERE a.k = b.k)"

    def declarations(self, source: str = "connector = 'memory'") -> str:
        """The streams, from a source in which `{seed}` is another number for each."""
        columns = "k BIGINT, x BIGINT" + (", g VARCHAR" if self.filler else "")
        declared = f"ts TIMESTAMP, {columns}, WATERMARK FOR ts AS ts"
        return "".join(
            f"CREATE STREAM {name} ({declared}) WITH ({source.format(seed=seed)});\n"
            for seed, name in enumerate(STREAMS, 1)
        )

    def generated(self, slides: int) -> str:
        """Declarations of streams that make their own rows, for so many basic windows."""
        rules = f"column.k = 'uniform 0 {self.keys - 1}', column.x = 'sequence'"
        if self.filler:
            rules += f", column.g = 'text {self.filler}'"
        rows = f"rows = {self.rows * slides}, rate = {self.rows}, seed = {{seed}}"
        return self.declarations(f"connector = 'generator', {rows}, {rules}")

    @property
    def row_bytes(self) -> int:
        """Of a row of a stream, as it comes."""
        return 8 + 8 + 8 + (4 + self.filler if self.filler else 0)


def basic_windows(cell: Cell) -> Iterator[Slide]:
    """One after the other, without end; the same rows whenever it is asked."""
    random = np.random.default_rng(4)
    number = 0
    while True:
        indexes = np.arange(cell.rows, dtype=np.int64)
        t = number * _SECOND + 1 + indexes * (_SECOND - 1) // cell.rows
        yield [(name, drawn(cell, random, t, number * cell.rows)) for name in STREAMS]
        number += 1


def drawn(cell: Cell, random: np.random.Generator, t: Int64s, first: int) -> pa.RecordBatch:
    """Rows with these times and random keys, numbered from `first`."""
    columns = {
        "ts": pa.array(t).cast(pa.timestamp("us")),
        "k": pa.array(random.integers(0, cell.keys, len(t))),
        "x": pa.array(np.arange(first, first + len(t), dtype=np.int64)),
    }
    return pa.RecordBatch.from_pydict(columns)
