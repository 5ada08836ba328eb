"""The memory of a bucket survives in its log, whatever becomes of the warm one, and costs what a batch brings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.memory_log import MemoryLog, MemoryWarm
from tests.pipeline.buckets import laid_out, rows
from tests.run_locally import batch_of
from transom.core.errors import CheckpointError
from transom.core.time import SECOND
from transom.kernels.slide_join import labour
from transom.kernels.slide_join.estimates import Decision
from transom.kernels.slide_join.memory import SlideJoinState
from transom.pipeline import keeper
from transom.pipeline.bucket import Bucket
from transom.pipeline.cargo import OUT, Parcel
from transom.pipeline.keeper import Kept
from transom.pipeline.layout import Layout
from transom.pipeline.packer import Packer
from transom.plan.catalogue import StreamDefinition
from transom.state import codec

LAYOUT = laid_out("SELECT k, x FROM s [PARTITION BY k ROWS 3]", buckets=1, emit="lifetimes")


def cargo(t: int, count: int = 1, layout: Layout = LAYOUT, name: str = "s") -> list[Parcel]:
    packer = Packer(layout, 0)
    given = rows(layout, name, *((t, i, t) for i in range(count))).rows
    taken = packer.take(name, batch_of(layout.sources[name].columns, given))
    return [*taken, *packer.finish()]


class Place:
    def __init__(self, layout: Layout = LAYOUT) -> None:
        self.bucket = Bucket(layout, 1, 0)
        self.log = MemoryLog()
        self.warm = MemoryWarm()

    def step(self, came: list[Parcel]) -> Kept:
        return keeper.step(self.bucket, self.log, self.warm, came)


def told(parcels: list[Parcel]) -> list[bytes]:
    return [bytes(parcel.packed()) for parcel in parcels if parcel.kind == OUT]


@pytest.mark.parametrize("least", [0, 1 << 30])
def test_without_warm_memory_it_is_made_again_from_the_log(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "LEAST_BYTES", least)
    sure, forgetful = Place(), Place()
    forgetful.log.part_bytes = 100
    for t in range(8):
        forgetful.warm = MemoryWarm()
        kept, known = forgetful.step(cargo(t, 200)), sure.step(cargo(t, 200))
        assert told(kept.parcels) == told(known.parcels)
        assert (kept.rebuilt, known.rebuilt) == (t > 0, False)
    assert told(kept.parcels), "something was told"


def test_what_was_not_committed_is_not_trusted() -> None:
    place = Place()
    place.step(cargo(0))
    committed = place.log.copy()
    lost = place.step(cargo(1))
    place.log = committed
    again = place.step(cargo(1))
    assert again.rebuilt and told(again.parcels) == told(lost.parcels)
    assert place.bucket.state.steps == 2


def test_what_an_attempt_left_in_one_worker_is_not_taken_for_what_another_committed() -> None:
    place, elsewhere = Place(), Place()
    place.step(cargo(0))
    elsewhere.log = place.log.copy()
    place.step(cargo(1))
    elsewhere.step(cargo(2))
    place.log = elsewhere.log
    assert place.step(cargo(3)).rebuilt
    assert place.bucket.doors.state.inputs["1.0"].ledger.used == 2, "the rows of 0 and 2"


def test_a_large_memory_is_not_written_with_every_small_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "LEAST_BYTES", 0)
    place = Place()
    large = place.step(cargo(0, 20_000)).written + place.step(cargo(1, 20_000)).written
    written = [place.step(cargo(2 + i, 100)).written for i in range(20)]
    assert max(written) < large / 10
    assert sum(len(blob) for blob in place.log.entries.values()) < 3 * large, "the log does not grow for ever"


def test_the_log_before_a_memory_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "LEAST_BYTES", 1 << 30)
    place = Place()
    for t in range(5):
        place.step(cargo(t))
    assert list(place.log.entries) == [(4, 0)]


def test_a_log_that_is_taken_otherwise_than_it_was_is_no_memory() -> None:
    """With another bound the rows would be late, and time elsewhere: what was told would be told again, or never."""
    place = Place(laid_out("SELECT k, x FROM d [PARTITION BY k ROWS 3]", buckets=1, emit="lifetimes"))
    for t in (3, 9):
        place.step(cargo(t, layout=place.bucket.layout, name="d"))
    layout = place.bucket.layout
    definition = layout.sources["d"]
    assert isinstance(definition, StreamDefinition)
    bound = replace(definition, time=replace(definition.time, bound=5 * SECOND))
    catalogue = replace(layout.catalogue, relations={**layout.catalogue.relations, "d": bound})
    other = Place(replace(layout, catalogue=catalogue))
    other.log = place.log
    with pytest.raises(CheckpointError, match=r"the time of 'd' came to 1970-01-01 00:00:04, where it .* 00:00:07"):
        other.step(cargo(12, layout=other.bucket.layout, name="d"))


def test_the_log_of_another_query_or_number_of_buckets_is_refused() -> None:
    place = Place()
    place.step(cargo(0))
    other = Place(laid_out("SELECT k, x FROM s [PARTITION BY k ROWS 3]", buckets=2, emit="lifetimes"))
    other.log = place.log
    with pytest.raises(CheckpointError, match="another number of buckets"):
        other.step(cargo(1, layout=other.bucket.layout))


def test_what_was_decided_by_measuring_is_decided_alike_when_memory_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window = "[RANGE 4 SECONDS SLIDE 1 SECOND]"
    layout = laid_out(
        f"SET slide_join = 'hybrid'; RSTREAM(SELECT s.x FROM s {window}, t {window} WHERE s.k = t.k)", buckets=1
    )
    asked: list[str] = []

    def whim(*_: object) -> Decision:
        """As if the disk were fast today and slow tomorrow."""
        asked.append("full" if len(asked) % 3 else "incremental")
        return Decision(asked[-1], asked[-1] == "incremental")

    monkeypatch.setattr(labour, "choose", whim)
    monkeypatch.setattr(keeper, "LEAST_BYTES", 0)
    monkeypatch.setattr(codec, "saved_bytes", lambda state, whole=False: 1 << 40)  # all of it stays in the log
    place = Place(layout)
    for t in range(12):
        place.step([*cargo(t, 3, layout, "s"), *cargo(t, 3, layout, "t")])
    (state,) = (s for memories in place.bucket.state.part.operators for s in memories if isinstance(s, SlideJoinState))
    decided, tactics = len(asked), dict(state.report.tactics)
    assert len(tactics) > 1
    again = keeper.recalled(Bucket(layout, 1, 0), place.log)
    (state,) = (s for memories in again.part.operators for s in memories if isinstance(s, SlideJoinState))
    assert len(asked) == decided and state.report.tactics == tactics
