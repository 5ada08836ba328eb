"""A bursty stream: rows are stamped when they come and do not wait, and for a while more come than can be joined.

Rows come in real time, a few times a slide. In the burst the windows outgrow the budget and a slide takes longer than
until the next one is due: what is unfinished then ends as incomplete and is put off. When the burst is over there is
time again, and what was put off is completed, the newest first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.harness import Outcome, digits
from benchmarks.overlap.contestants import HYBRID
from benchmarks.overlap.data import BASIC_WINDOWS, STREAMS, Cell
from transom.core.time import from_datetime
from transom.program.query_specs import handing
from transom.program.slides import SlideStatus
from transom.runtimes.local.query import LocalQuery
from transom.session import Session, workspace_of

_SECOND: Final = 1_000_000


@dataclass(frozen=True)
class Burst:
    """`calm` and `burst` are rows of a stream in a basic window; then come counts of slides, and batches a slide.

    `keys` are so many that a row of a calm stream has few matches.
    """

    calm: int
    burst: int
    slides_before: int
    slides_of_burst: int
    slides_after: int
    slide_ms: int
    batches: int
    keys: int
    budget_mb: float
    disk_mb_s: float
    put_off_ms: int = 200  # on Spark

    @property
    def slides(self) -> int:
        return self.slides_before + self.slides_of_burst + self.slides_after

    def rows(self, slide: int) -> int:
        in_burst = self.slides_before <= slide < self.slides_before + self.slides_of_burst
        return self.burst if in_burst else self.calm

    def __str__(self) -> str:
        return f"a burst, {self.slides * self.slide_ms // 1_000} s"

    @property
    def text(self) -> str:
        declared = "".join(
            f"CREATE STREAM {name} (k BIGINT, x BIGINT) WITH (connector = 'memory', time = 'arrival');\n"
            for name in STREAMS
        )
        window = f"[RANGE {BASIC_WINDOWS * self.slide_ms} MILLISECONDS SLIDE {self.slide_ms} MILLISECONDS]"
        cell = Cell("burst", self.burst, 1 / self.keys, self.budget_mb, self.disk_mb_s)
        query = f"RSTREAM(SELECT a.k, a.x, b.x AS y FROM a {window}, b {window} WHERE a.k = b.k)"
        return f"{declared} SET slide_join = 'hybrid'; {cell.settings} {query};"


class Diary:
    """When each slide was reported to be incomplete, and complete; results count by the attempt that they are of."""

    def __init__(self) -> None:
        self.complete: dict[int, int] = {}
        self.incomplete: dict[int, list[int]] = {}
        self.attempts: dict[int, int] = {}
        self.results = 0
        self.results_of: dict[int, int] = {}
        self.results_void = 0
        self._open: dict[tuple[int, int], int] = {}

    def follow(self, rows: pa.Table) -> None:
        now = time.time_ns() // 1_000
        grouped = rows.group_by(["at", "attempt", "status"]).aggregate([([], "count_all")])
        for one in sorted(grouped.to_pylist(), key=lambda one: one["status"] is not None):
            at, attempt = from_datetime(one["at"]), one["attempt"]
            if one["status"] is None:
                self._open[at, attempt] = self._open.get((at, attempt), 0) + one["count_all"]
                continue
            count = self._open.pop((at, attempt), 0)
            if one["status"] == "complete":
                assert at not in self.complete, "a slide was completed twice"
                self.complete[at], self.attempts[at] = now, attempt
                self.results_of[at] = count
                self.results += count
            else:
                self.incomplete.setdefault(at, []).append(now)
                self.results_void += count


def measure(burst: Burst) -> Outcome:
    """The run, slide by slide."""
    diary, session = Diary(), Session()
    planned = workspace_of(session).prepare(burst.text)[-1]
    query = workspace_of(session).assemble([planned], answer=handing(diary.follow)).queries[0]
    assert isinstance(query, LocalQuery)
    began = _feed(query, burst)
    for name in STREAMS:
        query.pipeline.end(name)
    _advance(query)
    (found,) = (one.slides for one in query.status().operators if one.slides is not None)
    query.close()
    figures = figures_of(burst, diary, found, began)
    return Outcome({**asdict(burst), "experiment": "burst"}, {HYBRID: figures})


def _feed(query: LocalQuery, burst: Burst) -> int:
    """Hand over what is due, and leave the rest of the time to the query; the instant that it began at."""
    length = burst.slide_ms * 1_000
    began = (time.time_ns() // 1_000 // length + 1) * length
    for due, rows in _batches(burst, began):
        while (now := time.time_ns() // 1_000) < due:
            output = query.pipeline.idle()
            if output is not None:
                query.sink.write(output.rows)
            else:
                time.sleep(min(due - now, 5_000) / _SECOND)
        for name, batch in zip(STREAMS, rows, strict=True):
            query.pipeline.push(name, batch, due)  # while the query was busy, it lay in the buffer of a network
        _advance(query)
    return began


def _advance(query: LocalQuery) -> None:
    output, _ = query.pipeline.advance()
    if output is not None:
        query.sink.write(output.rows)


def _batches(burst: Burst, began: int) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """Batches of both streams, with the instants at which they come."""
    random = np.random.default_rng(4)
    length = burst.slide_ms * 1_000
    for slide in range(burst.slides):
        for number in range(burst.batches):
            rows = burst.rows(slide) // burst.batches
            due = began + slide * length + (number + 1) * length // (burst.batches + 1)
            made = []
            for _ in STREAMS:
                k = pa.array(random.integers(0, burst.keys, rows))
                x = pa.array(random.integers(0, 1 << 40, rows))
                made.append(pa.RecordBatch.from_arrays([k, x, pa.nulls(rows, pa.timestamp("us"))], _NAMES))
            yield due, made


_NAMES: Final = ["k", "x", "arrival_time"]


def figures_of(burst: Burst, diary: Diary, found: SlideStatus, began: int) -> dict[str, Any]:
    """What became of the slides of a run that began then."""
    report, length = found.report, burst.slide_ms * 1_000
    slides: list[dict[str, Any]] = []
    for at in sorted(at for at in diary.complete if at < began + burst.slides * length):
        slides.append(
            {
                "slide": (at - began) // length,
                "delay_ms": digits((diary.complete[at] - at) / 1e3),
                "attempts": diary.attempts[at],
                "put_off_ms": [digits((reported - at) / 1e3) for reported in diary.incomplete.get(at, [])],
            }
        )
    at_once = [one["delay_ms"] for one in slides if one["attempts"] == 1]
    later = [one["delay_ms"] for one in slides if one["attempts"] > 1]
    return {
        "complete": report.complete,
        "put_off": report.put_off,
        "completed_later": report.completed_later,
        "unfinished": sorted((at - began) // length for at in set(diary.incomplete) - set(diary.complete)),
        "delay_ms_at_once": _spread(at_once),
        "delay_ms_later": _spread(later),
        "ways": dict(report.tactics),
        "results": diary.results,
        "results_void": diary.results_void,
        "slides": slides,
    }


def _spread(delays: list[float]) -> dict[str, float] | None:
    if not delays:
        return None
    return {"p50": digits(float(np.median(delays))), "most": max(delays)}
