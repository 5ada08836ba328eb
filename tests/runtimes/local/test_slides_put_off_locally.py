"""A local query over streams that do not wait: slides are put off under pressure, and made when nothing comes in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from tests.emitted_slides import EmittedSlides
from transom.cli.summary import summary
from transom.connectors.connector import Limits, OpenSink, Plan, Sink, Source, Split, SplitRows
from transom.connectors.source import Growing, Position
from transom.core.time import SECOND
from transom.kernels.slide_join import labour
from transom.plan.catalogue import Catalogue
from transom.planner import slide_join
from transom.program.inputs import Definition
from transom.program.planned import Planned, read_program
from transom.program.run import QuerySpec
from transom.runtimes.local.job import LocalJob
from transom.runtimes.local.query import LocalQuery

TEXT = """
CREATE STREAM a (k INTEGER, x INTEGER) WITH (time = 'arrival', connector = 'memory');
CREATE STREAM b (k INTEGER, x INTEGER) WITH (time = 'arrival', connector = 'memory');
SET memory = '6000 B'; SET slide_join = 'full';
RSTREAM(SELECT a.x, b.x FROM a [RANGE 4 SECONDS SLIDE 1 SECOND], b [RANGE 4 SECONDS SLIDE 1 SECOND] WHERE a.k = b.k)
"""


@dataclass
class BusyClock:
    """Whoever looks at it has worked for a while."""

    at: int = 0
    takes: int = 0

    def now(self) -> int:
        self.at += self.takes
        return self.at

    def sleep(self, micros: int, woken: Event | None = None) -> None:
        self.at += micros


@dataclass
class Arriving(Source):
    """Batches that come at their times, and are over then."""

    clock: BusyClock
    batches: list[tuple[int, int]]

    @property
    def schema(self) -> pa.Schema:
        return self._rows(0).schema

    def plan(self, position: Position, limits: Limits, *, growing: Growing = False) -> Plan:
        done = position.get("done", 0)
        came = done < len(self.batches) and self.batches[done][0] <= self.clock.at
        over = done + came == len(self.batches)
        splits = (Split("all", done, self.batches[done][1]),) if came else ()
        return Plan({"done": done + came}, splits, not came or over, over)

    def read_split(self, split: Split) -> Iterator[SplitRows]:
        yield SplitRows(self._rows(split.rows))

    def _rows(self, size: int) -> pa.RecordBatch:
        return pa.record_batch(
            {
                "k": pa.array([i % 5 for i in range(size)], pa.int32()),
                "x": pa.array(range(size), pa.int32()),
                "arrival_time": pa.nulls(size, pa.timestamp("us")),
            }
        )


class Heard(Sink):
    """A sink that keeps what it hears."""

    def __init__(self, reported: EmittedSlides) -> None:
        self.reported = reported

    def write(self, batch: pa.RecordBatch) -> None:
        self.reported.add(batch)

    def commit(self, epoch: int, token: Any) -> None: ...


@dataclass
class World:
    """A burst of rows in seconds 1 to 6, then silence, then a last row in second 300."""

    clock: BusyClock = field(default_factory=BusyClock)
    reported: EmittedSlides = field(default_factory=EmittedSlides)

    def planned(self) -> Planned:
        *_, planned = read_program(TEXT, Catalogue())
        return planned

    def source(self, definition: Definition) -> Arriving:
        bursts = [(second * SECOND + (definition.name == "b") * 1000, 40) for second in range(1, 7)]
        return Arriving(self.clock, [*bursts, (300 * SECOND, 1)])

    def query(self) -> LocalQuery:
        spec = QuerySpec(self.planned(), "query", "changes", OpenSink(lambda opening: Heard(self.reported)))
        (query,) = LocalJob([spec], self.source, ending="stopped", clock=self.clock).queries
        return query


def run(world: World, restart: bool) -> LocalQuery:
    query = world.query()
    for _ in range(5000):
        if query.finished:
            break
        if not query.step():
            world.clock.sleep(SECOND // 10)
        elif restart and world.reported.unfinished:
            saved = query.snapshot()
            query.abort()
            query = world.query()
            query.restore(saved)
            restart = False
    query.close()
    assert query.finished
    return query


@pytest.mark.parametrize("restart", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_what_is_put_off_is_made_when_nothing_comes(restart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    monkeypatch.setattr(labour, "UNIT_ROWS", 4)
    calm, busy = World(), World(BusyClock(takes=SECOND // 30))
    expected = run(calm, False)
    status = run(busy, restart).status().slides
    assert status is not None and not calm.reported.voided
    report = status.report
    assert report.put_off == report.completed_later == len(busy.reported.voided) > 1
    assert not status.waiting and not busy.reported.unfinished
    assert 0 < report.delay_most < 250 * SECOND, "they were made before the next row came"
    assert report.delay_total >= report.delay_most
    assert len(busy.reported.complete) == report.complete > 5
    first, second, *_ = (at for at in busy.reported.complete if at in busy.reported.voided)
    assert first > second, "the newest first"
    assert "completed later" in summary([expected.status()])
