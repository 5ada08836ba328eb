from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.connectors.fit import CannotFit, fit, outside_time, shown
from transom.core.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
)
from transom.core.time import BEGINNING, FOREVER

INF = float("inf")


@pytest.mark.parametrize(
    ("type_", "texts", "values", "bad"),
    [
        (INTEGER, ["1", " 2 ", "+3", "-4", None], [1, 2, 3, -4, None], ()),
        (INTEGER, ["1.5", "1.0", "1e3", "x", "", "2147483648"], [None] * 6, (0, 1, 2, 3, 4, 5)),
        (TINYINT, ["127", "128", "-128", "-129"], [127, None, -128, None], (1, 3)),
        (BIGINT, ["9223372036854775807", "9223372036854775808"], [2**63 - 1, None], (1,)),
        (DOUBLE, ["1.5", "1e400", "-inf", "Infinity", "x"], [1.5, None, -INF, INF, None], (1, 4)),
        (REAL, ["0.5", "1e39", "inf"], [0.5, None, INF], (1,)),
        (BOOLEAN, ["true", "FALSE", "1", "0", "yes"], [True, False, True, False, None], (4,)),
        (
            pa.decimal128(6, 2),
            ["1.10", "1.100", "1.005", "9999.99", "10000", "nan", " +2 "],
            [Decimal("1.10"), Decimal("1.10"), None, Decimal("9999.99"), None, None, Decimal("2.00")],
            (2, 4, 5),
        ),
        (
            DURATION,
            ["1 day 02:00:00", "-00:00:01.5", "90 minutes", "1 month", "x", "", None],
            [timedelta(hours=26), timedelta(seconds=-1.5), timedelta(minutes=90), None, None, None, None],
            (3, 4, 5),
        ),
        (
            DATE,
            ["2024-02-29", "2023-02-29", "0001-01-01", "0000-12-31", "9999-12-31", "soon"],
            [date(2024, 2, 29), None, date(1, 1, 1), None, date(9999, 12, 31), None],
            (1, 3, 5),
        ),
        (VARCHAR, ["", "é", None], ["", "é", None], ()),
    ],
)
def test_text_fits_or_is_named(type_: pa.DataType, texts: list[Any], values: list[Any], bad: tuple[int, ...]) -> None:
    fitted = fit(pa.array(texts, pa.string()), type_)
    assert fitted.values.to_pylist() == values
    assert fitted.values.type == type_
    assert fitted.bad == bad


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-05-01", datetime(2024, 5, 1)),
        ("2024-05-01T10:20", datetime(2024, 5, 1, 10, 20)),
        ("2024-05-01 10:20:30.5", datetime(2024, 5, 1, 10, 20, 30, 500_000)),
        ("2024-05-01T10:20:30.123456789", datetime(2024, 5, 1, 10, 20, 30, 123_456)),
        ("1969-12-31T23:59:59.9999999", datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        ("2024-05-01T10:20:30Z", datetime(2024, 5, 1, 10, 20, 30)),
        ("2024-05-01t10:20:30z", datetime(2024, 5, 1, 10, 20, 30)),
        (" 2024-05-01T10:20:30+02:00 ", datetime(2024, 5, 1, 8, 20, 30)),
        ("2024-05-01 10:20:30 -0530", datetime(2024, 5, 1, 15, 50, 30)),
        ("2024-05-01T10:20:30+02", datetime(2024, 5, 1, 8, 20, 30)),
        ("0001-01-01 00:00:00", datetime(1, 1, 1)),
        ("9999-12-31 23:59:59.999999", datetime(9999, 12, 31, 23, 59, 59, 999_999)),
        ("0001-01-01T00:00:00+02:00", None),
        ("9999-12-31T23:59:59-05:00", None),
        ("0000-12-31", None),
        ("2024-02-30", None),
        ("2024-05-01 24:00:00", None),
        ("2024-05-01 10:20:30 Europe/Paris", None),
        ("1714557600", None),
        ("", None),
        ("soon", None),
    ],
)
def test_timestamp_text_alone_and_in_company(text: str, instant: datetime | None) -> None:
    """How a value is read does not depend on its neighbours."""
    for texts in ([text], ["2020-01-01", text], [text, "2020-01-01T00:00:00Z"], ["rubbish", text, None]):
        fitted = fit(pa.array(texts), TIMESTAMP)
        at = texts.index(text)
        assert fitted.values.to_pylist()[at] == instant
        assert (at in fitted.bad) == (instant is None)


def test_numbers_are_instants_only_with_a_unit() -> None:
    with pytest.raises(CannotFit):
        fit(pa.array([1]), TIMESTAMP)
    assert fit(pa.array(["1"]), TIMESTAMP).bad == (0,)
    for values in (pa.array([1500, -1]), pa.array(["1500", "-1"])):
        fitted = fit(values, TIMESTAMP, time_unit=1_000)
        assert fitted.values.cast(pa.int64()).to_pylist() == [1_500_000, -1_000]
    assert fit(pa.array([2**62, 1]), TIMESTAMP, time_unit=1_000_000).bad == (0,)
    assert fit(pa.array(["99999999999999999999", "2024-05-01"]), TIMESTAMP, time_unit=1).bad == (0,)
    assert fit(pa.array([1.5, 2.0]), TIMESTAMP, time_unit=1_000).bad == (0,)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris"])
def test_timestamps_of_any_unit_and_zone(unit: str, zone: str | None) -> None:
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    fitted = fit(pa.array([per_second * 3, -per_second, None], pa.timestamp(unit, zone)), TIMESTAMP)
    assert fitted.values.cast(pa.int64()).to_pylist() == [3_000_000, -1_000_000, None]
    assert fitted.bad == ()


def test_intervals_of_databases() -> None:
    day, hour = 86_400_000_000, 3_600_000_000
    given = [None, (0, 1, 2 * hour * 1_000), (0, -3, -1_500), (1, 0, 0), (0, 1 << 30, 0), (0, 0, -36_000_000_500_000)]
    fitted = fit(pa.array(given, pa.month_day_nano_interval())[1:], DURATION)
    micros = [day + 2 * hour, -3 * day - 2, None, None, -36_000_000_500]
    assert fitted.values.cast(BIGINT).to_pylist() == micros and fitted.bad == (2, 3)
    assert len(fit(pa.array([], pa.month_day_nano_interval()), DURATION).values) == 0
    assert fit(pa.array([None], pa.month_day_nano_interval()), DURATION).values.to_pylist() == [None]


def test_durations_of_any_unit() -> None:
    assert fit(pa.array([1500, -1500, None], pa.duration("ns")), DURATION).values.cast(BIGINT).to_pylist() == [
        1,
        -2,
        None,
    ]
    seconds = fit(pa.array([1, 2**60], pa.duration("s")), DURATION)
    assert (seconds.values.to_pylist(), seconds.bad) == ([timedelta(seconds=1), None], (1,))
    with pytest.raises(CannotFit):
        fit(pa.array([1]), DURATION)


def test_nanoseconds_are_floored() -> None:
    fitted = fit(pa.array([1_999, -1], pa.timestamp("ns")), TIMESTAMP)
    assert fitted.values.cast(pa.int64()).to_pylist() == [1, -1]


def test_timestamps_beyond_the_time_domain_do_not_fit() -> None:
    for unit in ("s", "ms", "us"):
        assert fit(pa.array([2**62, 0, -(2**62)], pa.timestamp(unit)), TIMESTAMP).bad == (0, 2)
    assert fit(pa.array([3_000_000, 0], pa.date32()), DATE).bad == (0,)
    assert fit(pa.array([3_000_000, 0], pa.date32()), TIMESTAMP).bad == (0,)


@pytest.mark.parametrize(
    ("given_", "type_", "values", "bad"),
    [
        (pa.array([1, 40_000]), SMALLINT, [1, None], (1,)),
        (pa.array([1.0, 1.5, float("nan")]), INTEGER, [1, None, None], (1, 2)),
        (pa.array([Decimal("2.00"), Decimal("2.50")]), BIGINT, [2, None], (1,)),
        (pa.array([2**60 + 1]), DOUBLE, [float(2**60)], ()),
        (pa.array([1e300, 0.5, INF]), REAL, [None, 0.5, INF], (0,)),
        (pa.array([5, 123_456]), pa.decimal128(5, 1), [Decimal("5.0"), None], (1,)),
        (pa.array([0.1, 1.25]), pa.decimal128(5, 1), [Decimal("0.1"), None], (1,)),
        (pa.array([b"12", b"\xff"]), INTEGER, [12, None], (1,)),
        (pa.array([b"ok", b"\xff"]), VARCHAR, ["ok", None], (1,)),
        (pa.array(["a", None, "a"]).dictionary_encode(), VARCHAR, ["a", None, "a"], ()),
        (pa.array([0, 1], pa.timestamp("us")), DATE, [date(1970, 1, 1), None], (1,)),
        (pa.array([1, None], pa.date32()), TIMESTAMP, [datetime(1970, 1, 2), None], ()),
        (pa.array([None, None]), BOOLEAN, [None, None], ()),
        (pa.array([1, None]), VARCHAR, ["1", None], ()),
    ],
)
def test_typed_values(given_: pa.Array, type_: pa.DataType, values: list[Any], bad: tuple[int, ...]) -> None:
    fitted = fit(given_, type_)
    assert fitted.values.to_pylist() == values
    assert fitted.values.type == type_
    assert fitted.bad == bad


@pytest.mark.parametrize(
    ("given_", "type_"),
    [
        (pa.array([True]), INTEGER),
        (pa.array([1]), BOOLEAN),
        (pa.array([{"a": 1}]), VARCHAR),
        (pa.array([[1]]), INTEGER),
        (pa.array([1], pa.date32()), INTEGER),
        (pa.array([1], pa.time32("s")), TIMESTAMP),
    ],
)
def test_types_of_another_kind(given_: pa.Array, type_: pa.DataType) -> None:
    with pytest.raises(CannotFit):
        fit(given_, type_)


@given(st.lists(st.one_of(st.none(), st.integers(-(2**70), 2**70).map(str), st.text(max_size=4)), max_size=40))
def test_halving_finds_what_single_casts_reject(texts: list[str | None]) -> None:
    fitted = fit(pa.array(texts, pa.string()), BIGINT)
    alone = [fit(pa.array([text], pa.string()), BIGINT) for text in texts]
    assert fitted.values.to_pylist() == [each.values.to_pylist()[0] for each in alone]
    assert fitted.bad == tuple(at for at, each in enumerate(alone) if each.bad)


def test_what_cannot_be_the_time_of_a_row() -> None:
    instants = pa.array([BEGINNING, BEGINNING - 1, FOREVER - 1, FOREVER, None], pa.int64()).cast(TIMESTAMP)
    assert outside_time(instants) == (1, 3, 4)


def test_a_quoted_value_is_cut_short_and_always_text() -> None:
    assert shown(pa.array(["x" * 61]), 0) == "'" + "x" * 60 + "..'"
    assert shown(pa.array([b"a\xff"]), 0) == "'a\\xff'"
    assert shown(pa.array([None], pa.string()), 0) == "NULL"
    assert shown(pa.array([{"a": 1}]), 0) == "'{\"a\": 1}'"


@pytest.mark.parametrize(
    ("values", "type_", "fits"),
    [
        (pa.array([Decimal(10**37 + 1)], pa.decimal128(38, 0)), pa.decimal128(38, 10), False),
        (pa.array([Decimal(10**27)], pa.decimal128(38, 0)), pa.decimal128(38, 10), True),
        (pa.array([Decimal("1.50")], pa.decimal256(76, 40)), pa.decimal128(3, 1), True),
        (pa.array([Decimal("1.55")], pa.decimal256(76, 40)), pa.decimal128(3, 1), False),
        (pa.array([3]).cast(pa.decimal128(19, 0)).view(pa.decimal128(19, -37)), pa.decimal128(38, 0), True),
        (pa.array([35]).cast(pa.decimal128(19, 0)).view(pa.decimal128(19, -37)), pa.decimal128(38, 0), False),
        (pa.array([35]).cast(pa.decimal128(19, 0)).view(pa.decimal128(19, -37)), BIGINT, False),
        (pa.array([2.0**128]), pa.decimal128(38, 0), False),
        (pa.array(["0" * 50 + "5", "5." + "0" * 50, "5" + "0" * 60 + "e-60"]), pa.decimal128(5, 0), True),
        (pa.array(["1e999999999", "1e-999999999", "1e99999999999999999999"]), pa.decimal128(5, 2), False),
        (pa.array(["0.5", ".5", "-0.5"]), pa.decimal128(2, 2), True),
        (pa.array(["1.5", "1", "\u0665", "1_0", "Infinity", "NaN"]), pa.decimal128(2, 2), False),
    ],
)
def test_decimals_are_the_very_number_or_do_not_fit(values: pa.Array, type_: pa.DataType, fits: bool) -> None:
    fitted = fit(values, type_)
    assert fitted.bad == (() if fits else tuple(range(len(values))))
    if fits:
        assert [Decimal(str(each)) for each in fitted.values.to_pylist()] == [
            Decimal(str(each)) for each in values.to_pylist()
        ]


def test_a_decimal_that_does_not_keep_to_the_precision_of_its_own_type_does_not_fit() -> None:
    """Parquet keeps a decimal in as many bytes as the file likes."""
    data = pa.py_buffer((10**30).to_bytes(16, "little") + (7).to_bytes(16, "little"))
    fitted = fit(pa.Array.from_buffers(pa.decimal128(5, 0), 2, [None, data]), pa.decimal128(5, 0))
    assert (fitted.values.to_pylist(), fitted.bad) == ([None, Decimal(7)], (0,))


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False), min_size=1), st.integers(1, 38), st.data())
def test_a_decimal_text_fits_exactly_when_the_type_has_the_number(
    numbers: list[Decimal], precision: int, data: st.DataObject
) -> None:
    type_ = pa.decimal128(precision, data.draw(st.integers(0, precision)))
    fitted = fit(pa.array([str(number) for number in numbers]), type_)
    for row, number in enumerate(numbers):
        unscaled = Fraction(number) * 10**type_.scale
        assert (row not in fitted.bad) == (unscaled.denominator == 1 and abs(unscaled) < 10**precision)
        assert row in fitted.bad or fitted.values[row].as_py() == number
