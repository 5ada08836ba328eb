from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.reading import read_all
from transom.connectors.files import FileSource
from transom.core.schema import BOOLEAN, DATE, DOUBLE, INTEGER, REAL, TIMESTAMP, VARCHAR, Schema

COLUMNS = Schema.of(("id", INTEGER), ("name", VARCHAR), ("ts", TIMESTAMP))
MAY = datetime(2024, 5, 1)
ALL_TYPES = Schema.of(
    ("i", INTEGER),
    ("f", DOUBLE),
    ("r", REAL),
    ("d", pa.decimal128(8, 2)),
    ("s", VARCHAR),
    ("b", BOOLEAN),
    ("day", DATE),
    ("at", TIMESTAMP),
)


def source(path: Path, columns: Schema = COLUMNS, **properties: str) -> FileSource:
    return FileSource(columns, {"path": str(path), **properties}, time_column="ts" if "ts" in columns.names else None)


def written(folder: Path, lines: list[str | bytes], name: str = "a.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n")
    return path


def test_fields_by_name_missing_ones_are_null(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        ['{"ts": "2024-05-01T00:00:00Z", "more": [1, {"id": 9}], "id": 1}', "", '{"name": null, "ts": "2024-05-01"}'],
    )
    everything = read_all(source(path))
    assert everything.rows == [{"id": 1, "name": None, "ts": MAY}, {"id": None, "name": None, "ts": MAY}]
    assert everything.rejected == []


def test_names_in_any_case_even_where_they_change(tmp_path: Path) -> None:
    lines = ['{"ID": 1, "ts": "2024-05-01"}', '{"id": 2, "TS": "2024-05-01"}', '{"\\u0049d": 3, "ts": "2024-05-01"}']
    for order in (lines, lines[::-1]):
        everything = read_all(source(written(tmp_path, list(order))))
        assert sorted(row["id"] for row in everything.rows) == [1, 2, 3]


def test_all_types(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [
            '{"i": 1, "f": 1.5, "r": 0.5, "d": 1.25, "s": "x", "b": true, "day": "2024-05-01", "at": "2024-05-01"}',
            '{"i": "1", "f": "1.5", "r": "nan", "d": "1.25", "s": 7, "b": "true", "at": "2024-05-01T02:00:00+02:00"}',
        ],
    )
    first, second = read_all(source(path, ALL_TYPES)).rows
    assert first == {
        "i": 1, "f": 1.5, "r": 0.5, "d": Decimal("1.25"), "s": "x", "b": True, "day": date(2024, 5, 1), "at": MAY,
    }  # fmt: skip
    assert second.pop("r") != 0
    assert second == {"i": 1, "f": 1.5, "d": Decimal("1.25"), "s": "7", "b": True, "day": None, "at": MAY}


def test_only_the_bad_lines_are_rejected(tmp_path: Path) -> None:
    good = '{"id": 1, "name": "good", "ts": "2024-05-01"}'
    bad: list[tuple[str | bytes, str]] = [
        ('{"id": "x", "ts": "2024-05-01"}', "column 'id' is INTEGER and cannot hold 'x'"),
        ('{"id": 1.5, "ts": "2024-05-01"}', "column 'id' is INTEGER and cannot hold '1.5'"),
        ('{"id": 2147483648, "ts": "2024-05-01"}', "column 'id' is INTEGER and cannot hold '2147483648'"),
        ('{"id": true, "ts": "2024-05-01"}', "column 'id' is INTEGER and cannot hold 'true'"),
        ('{"id": [1], "ts": "2024-05-01"}', "the line has an array in column 'id'"),
        ('{"name": {"a": 1}, "ts": "2024-05-01"}', "the line has an object in column 'name'"),
        (
            '{"name": "\\ud800", "ts": "2024-05-01"}',
            "the line has half a character (a lone surrogate) in column 'name'",
        ),
        ('{"id": 1, "ID": 2, "ts": "2024-05-01"}', "the line has field 'ID' twice"),
        ('{"id": 1}', "the time column 'ts' is NULL"),
        ('{"id": 1, "ts": null}', "the time column 'ts' is NULL"),
        ('{"id": 1, "ts": "someday"}', "column 'ts' is TIMESTAMP and cannot hold 'someday'"),
        ('{"id": 1, "ts": 1714521600}', "time_unit"),
        ("[1, 2]", "the line is not a JSON object"),
        ("not json", "the line is not valid JSON"),
        ('{"id": 1, "ts": "2024-05-01"', "the line is not valid JSON"),
        ('{"id": 1, "ts": "2024-05-01"}{"id": 2, "ts": "2024-05-01"}', "the line is not valid JSON"),
        ('{"id":', "the line is not valid JSON"),
        ('3, "ts": "2024-05-01"}', "the line is not valid JSON"),
        (b'{"name": "\xff", "ts": "2024-05-01"}', "the line is not valid UTF-8 (byte 0xff)"),
        ('{"name": "a\tb", "ts": "2024-05-01"}', "the line is not valid JSON"),
    ]
    lines: list[str | bytes] = []
    for line, _ in bad:
        lines += [good, line]
    everything = read_all(source(written(tmp_path, lines)))
    assert len(everything.rows) == len(bad)
    assert [row["position"].rpartition(" ")[2] for row in everything.rejected] == [
        str(2 * n + 2) for n in range(len(bad))
    ]
    for reason, (_, expected) in zip(everything.reasons, bad, strict=True):
        assert expected in reason


def test_two_objects_on_a_line_do_not_make_up_for_one_on_two_lines(tmp_path: Path) -> None:
    at = '"ts": "2024-05-01"'
    lines: list[str | bytes] = [f'{{"id": 1, {at}}}{{"id": 2, {at}}}', '{"id":', f"3, {at}}}", f'{{"id": 4, {at}}}']
    everything = read_all(source(written(tmp_path, lines)))
    assert [row["id"] for row in everything.rows] == [4]
    assert len(everything.rejected) == 3


@pytest.mark.parametrize("depth", [50, 200_000])
def test_deep_nesting_in_a_field_nobody_reads(tmp_path: Path, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    line = f'{{"id": 1, "z": {nested}, "ts": "2024-05-01"}}'
    for lines in ([line], [line, "not json"], [line.replace('"id"', '"Id"'), line]):
        everything = read_all(source(written(tmp_path, list(lines))))
        assert {row["id"] for row in everything.rows} <= {1}
        assert len(everything.rows) + len(everything.rejected) == len(lines)
    assert read_all(source(written(tmp_path, [line]))).rows == [{"id": 1, "name": None, "ts": MAY}]


def test_numbers_are_times_with_a_unit(tmp_path: Path) -> None:
    path = written(
        tmp_path, ['{"id": 1, "ts": 1714521600000}', '{"id": 2, "ts": "2024-05-01"}', '{"id": 3, "ts": 1.5}']
    )
    everything = read_all(source(path, time_unit="ms"))
    assert [(row["id"], row["ts"]) for row in everything.rows] == [(1, MAY), (2, MAY)]
    assert everything.reasons == ["column 'ts' is TIMESTAMP and cannot hold '1.5'"]


def test_strings_of_megabytes_and_a_last_line_without_its_end(tmp_path: Path) -> None:
    long = "é" * 9_000_000
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"name": "{long}", "ts": "2024-05-01"}}\n{{"name": "b", "ts": "2024-05-01"}}', encoding="utf-8")
    assert [row["name"] for row in read_all(source(path)).rows] == [long, "b"]


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_files_without_rows(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(text)
    assert read_all(source(path)).rows == []


def test_a_restart_at_every_position_gives_exactly_the_rest(tmp_path: Path) -> None:
    lines: list[str | bytes] = [f'{{"id": {n}, "ts": "2024-05-01"}}' if n % 3 else f"bad {n}" for n in range(10)]
    path = written(tmp_path, lines)
    whole = read_all(source(path))
    steps = read_all(source(path), step=1)
    assert (steps.rows, steps.rejected) == (whole.rows, whole.rejected)
    for taken, position in enumerate(steps.positions[:10], start=1):
        rest = read_all(source(path), position, step=3)
        assert len(rest.rows) + len(rest.rejected) == 10 - taken
        assert whole.rows[len(whole.rows) - len(rest.rows) :] == rest.rows


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**33), 2**33),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["12", "1.5", "nan", "2024-05-01", "2024-05-01T10:00:00Z", "true", " 7 ", "1e400", "0x1f"]),
    st.lists(st.integers(), max_size=1),
)


@given(value=scalars, column=st.sampled_from(ALL_TYPES.names), ascii_=st.booleans())
def test_a_line_is_read_the_same_by_the_fast_way_and_by_the_visit(
    tmp_path_factory: pytest.TempPathFactory, value: Any, column: str, ascii_: bool
) -> None:
    """Alone, beside a line that cannot be read, and with a blank that makes the fast way pass it on."""
    folder = tmp_path_factory.getbasetemp()
    line = json.dumps({column: value}, ensure_ascii=ascii_)
    outcomes = []
    for lines in ([line], [line, "rubbish"], [line + " "], [line, json.dumps({column.upper(): None})]):
        everything = read_all(source(written(folder, list(lines)), ALL_TYPES))
        own = [row["reason"] for row in everything.rejected if row["position"].endswith("line 1")]
        outcomes.append((repr(everything.rows[0]) if not own else None, own))
    assert outcomes.count(outcomes[0]) == len(outcomes)
