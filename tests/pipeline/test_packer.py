"""What a task sends: to whom, what it judges by itself, and what it tells everybody about its stretch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from tests.pipeline.buckets import Row, laid_out, rows
from tests.run_locally import batch_of
from transom.core.errors import LateRowError
from transom.core.time import SECOND
from transom.pipeline import packer as packing
from transom.pipeline.cargo import SIDE_ROWS, CargoPart, Parcel
from transom.pipeline.layout import SINK, Layout
from transom.pipeline.packer import Packer
from transom.pipeline.seen import heard, unpacked_times

GROUPED = "SELECT k, COUNT(*) AS n FROM {0} [RANGE 5 SECONDS] {1} GROUP BY k"


def sent(layout: Layout, name: str, *batches: list[Row]) -> list[Parcel]:
    packer = Packer(layout, 4)
    found: list[Parcel] = []
    for batch in batches:
        found += packer.take(name, batch_of(layout.sources[name].columns, rows(layout, name, *batch).rows))
    return found + list(packer.finish())


def parts(parcels: list[Parcel], kind: str) -> list[tuple[int, CargoPart]]:
    """The parts of a kind, each with its bucket."""
    found = [(p.bucket, part) for p in parcels if p.fragment != SINK for part in p.opened()]
    return [(bucket, part) for bucket, part in found if part.kind == kind]


def rows_in(parcels: list[Parcel], kind: str) -> list[tuple[int, pa.RecordBatch]]:
    return [(bucket, part.rows) for bucket, part in parts(parcels, kind) if part.rows is not None]


def seen(parcels: list[Parcel]) -> dict[str, Any]:
    """What was told of the one source: the same to every bucket."""
    told = [heard(part) for _, part in parts(parcels, "seen")]
    assert all(part == told[0] for part in told)
    return {**told[0].about, "firsts": unpacked_times(told[0].about["firsts"]).tolist()}


def test_every_bucket_hears_of_every_stretch_and_a_key_goes_to_one() -> None:
    layout = laid_out(GROUPED.format("d", ""), buckets=4)
    parcels = sent(layout, "d", [(t, t % 6, 0) for t in range(30)])
    assert Counter(bucket for bucket, _ in parts(parcels, "seen")) == dict.fromkeys(range(4), 1)
    homes = [(bucket, k) for bucket, sent_on in rows_in(parcels, "rows") for k in set(sent_on.column(0).to_pylist())]
    assert sorted(k for _, k in homes) == list(range(6)) and len({bucket for bucket, _ in homes}) > 1
    assert seen(parcels)["rows_in"] == 30 and seen(parcels)["greatest"] == 29 * SECOND


def test_rows_that_nobody_reads_are_told_of_by_their_time_alone() -> None:
    layout = laid_out(GROUPED.format("d", "WHERE x > 1"), buckets=2)
    parcels = sent(layout, "d", [(1, 7, 0), (2, 7, 5), (3, 8, None)])
    ((bucket, unwanted),) = rows_in(parcels, "unwanted")
    assert bucket == 0 and unwanted.columns[0].to_pylist() == [1 * SECOND, 3 * SECOND]
    assert sum(len(sent_on) for _, sent_on in rows_in(parcels, "rows")) == 1
    shown = sent(laid_out(GROUPED.format("t", "WHERE x > 1")), "t", [(1, 7, 0)])
    ((_, whole),) = rows_in(shown, "unwanted")
    assert whole.num_columns == 4, "late = 'side': it may have to be shown"


def test_a_second_port_does_not_account_for_rows_that_the_first_has_accounted_for() -> None:
    text = "SELECT m.k FROM d [NOW] AS m, d [RANGE 9 SECONDS] AS o WHERE m.k = o.x AND m.x > 1 AND o.x > 2"
    parcels = sent(laid_out(text, buckets=1), "d", [(1, 7, 0), (1, 7, 2), (1, 7, 3)])
    assert [len(sent_on) for _, sent_on in rows_in(parcels, "unwanted")] == [1]
    assert sorted(len(sent_on) for _, sent_on in rows_in(parcels, "rows")) == [1, 2]


def test_a_task_judges_what_is_late_by_its_own_rows_across_its_batches() -> None:
    layout = laid_out(GROUPED.format("t", ""))
    parcels = sent(layout, "t", [(10, 1, 0), (None, 2, 0)], [(8, 3, 0), (7, 4, 0)], [(11, 5, 0)])
    told = seen(parcels)
    assert (told["rows_in"], told["late"], told["rejected"], told["greatest"]) == (5, 1, 1, 11 * SECOND)
    assert told["firsts"] == [t * SECOND for t in (8, 10, 11)]
    assert sorted(told["reasons"].values()) == [1, 1]
    side = [part.rows for parcel in parcels if parcel.kind == SIDE_ROWS for part in parcel.opened()]
    assert [
        row["row"] for batch in side if batch is not None for row in batch.to_pylist() if "late" in row["reason"]
    ] == ['{"ts": "1970-01-01 00:00:07", "k": 4, "x": 0}']


def test_a_late_row_fails_the_task_where_that_is_asked_for() -> None:
    with pytest.raises(LateRowError, match="'f' came late"):
        sent(laid_out(GROUPED.format("f", "")), "f", [(10, 1, 0)], [(9, 1, 0)])


def test_without_disorder_only_the_first_time_of_a_stretch_can_begin_the_query() -> None:
    told = seen(sent(laid_out(GROUPED.format("s", "")), "s", [(3, 1, 0), (4, 1, 0)], [(9, 1, 0)]))
    assert set(told["firsts"]) <= {3 * SECOND, 9 * SECOND} and told["firsts"][0] == 3 * SECOND


def test_a_change_that_takes_away_does_not_begin_a_query() -> None:
    told = seen(sent(laid_out("SELECT k FROM r"), "r", [(1, "-", 1), (2, "+", 2), (3, "?", 3)]))
    assert told["firsts"] == [2 * SECOND] and told["greatest"] == 3 * SECOND
    assert (told["late"], told["rejected"]) == (0, 0), "whether the last one is late or unfit, a bucket says"


def test_a_large_place_is_sent_before_the_end_and_its_parts_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_BYTES", 1)
    layout = laid_out("SELECT x FROM s [ROWS 2]")
    parcels = sent(layout, "s", [(1, 1, 1)], [(1, 1, 2)], [(2, 1, 3)])
    assert len(parcels) == 4, "three with a row, and one that tells of the stretch"
    assert [part.about["number"] for _, part in parts(parcels, "rows")] == [0, 1, 2]
    assert {part.about["sender"] for _, part in parts(parcels, "rows")} == {4}


def test_an_input_that_is_over_is_told_of_without_a_row() -> None:
    layout = laid_out(GROUPED.format("d", ""))
    packer = Packer(layout, 0, now=17)
    packer.end("d")
    told = seen(list(packer.finish()))
    assert (told["ended"], told["rows_in"], told["greatest"], told["now"]) == (True, 0, None, 17)
