"""Every window of semantics.md as it can be written, and what is not supported."""

from __future__ import annotations

import pytest

from tests.cql.queries import bind, catalogue, marked, rejected, relation, window
from transom.core.time import BEGINNING, FOREVER, SECOND
from transom.plan.algebra import Change, StreamScan, ToStream, Window, WindowSpec

MINUTE = 60 * SECOND


@pytest.mark.parametrize(
    ("written", "spec"),
    [
        ("S [RANGE 10 SECONDS]", WindowSpec(range=10 * SECOND)),
        ("S [range 10 second]", WindowSpec(range=10 * SECOND)),
        ("S [Range 10 s]", WindowSpec(range=10 * SECOND)),
        ("S [Range 10s]", WindowSpec(range=10 * SECOND)),
        ("S [60 MINUTE]", WindowSpec(range=60 * MINUTE)),
        ("S [RANGE 1.5 MIN]", WindowSpec(range=90 * SECOND)),
        ("S [RANGE 2 mins]", WindowSpec(range=2 * MINUTE)),
        ("S [RANGE 1 hour]", WindowSpec(range=60 * MINUTE)),
        ("S [RANGE 1 DAY]", WindowSpec(range=24 * 60 * MINUTE)),
        ("S [RANGE 1 WEEK]", WindowSpec(range=7 * 24 * 60 * MINUTE)),
        ("S [RANGE 250 milliseconds]", WindowSpec(range=250_000)),
        ("S [RANGE 3 us]", WindowSpec(range=3)),
        ("S [RANGE INTERVAL '10' SECOND]", WindowSpec(range=10 * SECOND)),
        ("S [RANGE INTERVAL 10 SECONDS]", WindowSpec(range=10 * SECOND)),
        ("S [INTERVAL '10 seconds']", WindowSpec(range=10 * SECOND)),
        ("S [ROWS 3]", WindowSpec(rows=3)),
        ("S [PARTITION BY A ROWS 3]", WindowSpec(rows=3, partition=(1,))),
        ("S [Partition By S.A Rows 1]", WindowSpec(rows=1, partition=(1,))),
        ("S [PARTITION BY S.b, a ROWS 3]", WindowSpec(rows=3, partition=(2, 1))),
        ("S [PARTITION BY x.A ROWS 3] AS x", WindowSpec(rows=3, partition=(1,))),
        ("S [PARTITION BY S.A ROWS 3] AS x", WindowSpec(rows=3, partition=(1,))),
        ("S [ROWS 3 RANGE 5 SECONDS]", WindowSpec(rows=3, range=5 * SECOND)),
        ("S [RANGE 5 SECONDS ROWS 3]", WindowSpec(rows=3, range=5 * SECOND)),
        ("S [PARTITION BY A ROWS 3 RANGE 5 SECONDS]", WindowSpec(rows=3, range=5 * SECOND, partition=(1,))),
        ("S [PARTITION BY A RANGE 5 SECONDS ROWS 3]", WindowSpec(rows=3, range=5 * SECOND, partition=(1,))),
        ("S [NOW]", WindowSpec(now=True)),
        ("S [RANGE UNBOUNDED]", WindowSpec()),
        ("S [UNBOUNDED]", WindowSpec()),
        ("S", WindowSpec()),
        ("S AS x", WindowSpec()),
        ("S x", WindowSpec()),
        ("S [RANGE 10 SECONDS SLIDE 5 SECONDS]", WindowSpec(range=10 * SECOND, slide=5 * SECOND)),
        ("S [RANGE 10 SECONDS, SLIDE 5 SECONDS]", WindowSpec(range=10 * SECOND, slide=5 * SECOND)),
        ("S [10 SECONDS SLIDE INTERVAL '5' SECOND]", WindowSpec(range=10 * SECOND, slide=5 * SECOND)),
        ("S [ROWS 10 SLIDE 4]", WindowSpec(rows=10, slide=4)),
        ("S [ROWS 10, SLIDE 4] x", WindowSpec(rows=10, slide=4)),
    ],
)
def test_written_windows(written: str, spec: WindowSpec) -> None:
    assert window(written) == spec


def test_a_range_beyond_the_time_domain_is_cut_to_its_length() -> None:
    """Rows that live that long live forever, wherever in the domain they begin; and it still fits 64 bits."""
    spec = window(f"S [RANGE {10**30} DAYS]")
    assert spec.range == FOREVER - BEGINNING < 1 << 62


def test_a_range_within_the_domain_is_exact() -> None:
    assert window("S [RANGE 3000000 DAYS]").range == 3_000_000 * 24 * 60 * MINUTE


def test_durations_are_multiples_of_the_tick() -> None:
    of_two_seconds = catalogue("SET tick = '2 SECONDS';")
    assert window("S [RANGE 4 SECONDS SLIDE 2 SECONDS]", of_two_seconds).range == 4 * SECOND
    assert marked(rejected("SELECT * FROM S [RANGE 5 SECONDS]", of_two_seconds)) == "5 SECONDS"
    assert "SET tick" in str(rejected("SELECT * FROM S [RANGE 4 SECONDS SLIDE 1 SECOND]", of_two_seconds).remedy)


@pytest.mark.parametrize(
    ("written", "what", "remedy"),
    [
        ("[RANGE 0 SECONDS]", "RANGE 0", "write NOW"),
        ("[ROWS 0]", "ROWS 0", "[ROWS 1]"),
        ("[ROWS 1.5]", "a number of rows", "ROWS 10"),
        ("[ROWS 99999999999999999999]", "a number of rows", "ROWS 10"),
        ("[RANGE 10]", "a unit of time", "10 SECONDS"),
        ("[RANGE 10 FORTNIGHTS]", "a unit of time", "10 SECONDS"),
        ("[RANGE 2 MONTHS]", "no fixed length", "30 DAYS"),
        ("[RANGE INTERVAL '1' YEAR]", "no fixed length", "30 DAYS"),
        ("[RANGE 0.5 us]", "no duration", "whole microseconds"),
        ("[RANGE 1e3 SECONDS]", "no duration", "10 SECONDS"),
        ("[RANGE INTERVAL 'soon']", "no duration", "10 SECONDS"),
        ("[RANGE 10 SECONDS SLIDE 0 SECONDS]", "SLIDE 0", "SLIDE 5 SECONDS"),
        ("[RANGE 10 SECONDS SLIDE 5]", "is a duration", "SLIDE 5 SECONDS"),
        ("[ROWS 10 SLIDE 5 SECONDS]", "number of rows", "[ROWS 10 SLIDE 5]"),
        ("[ROWS 10 SLIDE 0]", "SLIDE 0", "[ROWS 10 SLIDE 5]"),
        ("[PARTITION BY A ROWS 10 SLIDE 5]", "SLIDE with PARTITION BY", "leave SLIDE out"),
        ("[NOW SLIDE 5 SECONDS]", "SLIDE with NOW", "leave SLIDE out"),
        ("[RANGE UNBOUNDED SLIDE 5 SECONDS]", "SLIDE with RANGE UNBOUNDED", "leave SLIDE out"),
        ("[ROWS 10 RANGE 5 SECONDS SLIDE 5]", "both ROWS and RANGE", "leave ROWS or RANGE out"),
        ("[SLIDE 5 SECONDS]", "SLIDE alone", "RANGE 10 SECONDS SLIDE"),
        ("[NOW ROWS 5]", "NOW stands alone", "write [NOW]"),
        ("[RANGE UNBOUNDED RANGE 5 SECONDS]", "both bounded and unbounded", "one RANGE"),
        ("[PARTITION BY A]", "needs ROWS", "PARTITION BY column ROWS"),
        ("[PARTITION BY nosuch ROWS 1]", "no column 'nosuch'", "A, B"),
        ("[PARTITION BY T.A ROWS 1]", "'T' is not the stream", "S.A"),
        ("[ROWS 5 ROWS 6]", "ROWS twice", "once"),
        ("[]", "empty", "[NOW]"),
        ("[RANGE 5 SECONDS,]", "comma", "remove it"),
        ("[FOREVER]", "cannot contain 'FOREVER'", "[RANGE UNBOUNDED]"),
        ("[ROWS 5", "cannot contain the end", "[NOW]"),
    ],
)
def test_rejected_windows(written: str, what: str, remedy: str) -> None:
    error = rejected(f"SELECT * FROM S {written}")
    assert what in error.what
    assert error.remedy is not None and remedy in error.remedy


@pytest.mark.parametrize("written", ["R [ROWS 5]", "names [ROWS 5]", "V [ROWS 5]", "(SELECT * FROM S) [ROWS 5] AS x"])
def test_relations_take_no_window(written: str) -> None:
    error = rejected(f"SELECT * FROM {written}")
    assert "windows are for streams" in error.what
    assert error.remedy is not None and "ISTREAM(" in error.remedy
    assert marked(error) == "[ROWS 5]"


def test_a_window_behind_the_alias_is_reported_where_to_stand() -> None:
    assert rejected("SELECT * FROM S AS x [ROWS 5]").remedy == "write S [..] AS x"


@pytest.mark.parametrize(
    "written",
    [
        "ISTREAM(SELECT A, B FROM V) [PARTITION BY A ROWS 10] AS x",
        "(SELECT ISTREAM A, B FROM V) [PARTITION BY x.A ROWS 10] AS x",
        "(ISTREAM(SELECT A, B FROM V)) [PARTITION BY A ROWS 10] AS x",
    ],
)
def test_a_stream_made_from_a_relation_can_be_windowed(written: str) -> None:
    bound = bind(f"SELECT x.B FROM {written}")
    (at,) = bound.inputs
    assert isinstance(at, Window)
    assert at.spec == WindowSpec(rows=10, partition=(0,))
    assert isinstance(at.input, ToStream) and at.input.change is Change.ISTREAM


def test_a_view_over_a_stream_operator_is_a_stream() -> None:
    bound = relation("SELECT * FROM News [ROWS 2]")
    assert isinstance(bound, Window)
    assert isinstance(bound.input, ToStream)


def test_two_windows_on_one_stream() -> None:
    bound = bind("SELECT X.A, Y.B FROM S [RANGE 10 SECONDS] AS X, S [ROWS 2] AS Y WHERE X.A = Y.A")
    ((join,),) = (f.inputs for f in bound.inputs)
    windows = [w for w in join.inputs if isinstance(w, Window)]
    assert [str(w.spec) for w in windows] == ["[RANGE 10 SECOND]", "[ROWS 2]"]
    assert all(isinstance(w.input, StreamScan) and w.input.name == "S" for w in windows)
