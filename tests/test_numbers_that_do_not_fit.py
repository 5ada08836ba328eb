"""A number that its column cannot hold is a rejected row, however it comes: never another number."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transom import Session

WRAPS = 2**128 + 5
"""39 digits, of which 128 bits keep the 5."""

NUMBERS = [
    str(WRAPS),
    str(-WRAPS),
    str(2**128 * 10 + 5),
    str(2**256 + 7),
    "1" + "0" * 38,
    "9" * 77,
    "1" * 100,
    f"{WRAPS}.25",
    f"{2**128 + 500}"[:-3] + "." + f"{2**128 + 500}"[-3:],
    f"{WRAPS}e0",
    "35e37",
]
TYPES = ["DECIMAL(5, 0)", "DECIMAL(7, 2)", "DECIMAL(38, 2)", "HUGEINT"]


def csv(path: Path, number: str) -> str:
    path.write_text(f"ts,n\n2024-05-01,{number}\n2024-05-01,7\n")
    return f"WITH (connector = 'files', path = '{path}', format = 'csv')"


def jsonl(path: Path, number: str) -> str:
    path.write_text(f'{{"ts": "2024-05-01", "n": {number}}}\n{{"ts": "2024-05-01", "n": 7}}\n')
    return f"WITH (connector = 'files', path = '{path}', format = 'jsonl')"


def quoted(path: Path, number: str) -> str:
    path.write_text("".join(json.dumps({"ts": "2024-05-01", "n": text}) + "\n" for text in (number, "7")))
    return f"WITH (connector = 'files', path = '{path}', format = 'jsonl')"


def parquet(path: Path, number: str) -> str:
    numbers = [Decimal(number), Decimal(7)]
    wide = all(len(one.as_tuple().digits) < 74 for one in numbers)
    values = pa.array(numbers, pa.decimal256(76, 3)) if wide else pa.array([number, "7"])
    pq.write_table(pa.table({"ts": ["2024-05-01"] * 2, "n": values}), path)
    return f"WITH (connector = 'files', path = '{path}', format = 'parquet')"


@pytest.mark.parametrize("written", [csv, jsonl, quoted, parquet])
@pytest.mark.parametrize("type_", TYPES)
def test_in_files(tmp_path: Path, written: Callable[[Path, str], str], type_: str) -> None:
    for index, number in enumerate(NUMBERS):
        source = written(tmp_path / str(index), number)
        session = Session()
        session.execute(f"CREATE STREAM s (ts TIMESTAMP, n {type_}, WATERMARK FOR ts AS ts) {source}")
        assert session.run("ISTREAM(SELECT n FROM s)").to_arrow()["n"].to_pylist() == [Decimal(7)], number
        assert session.dead_letters["reason"].to_pylist()[0].startswith("column 'n' is DECIMAL("), number


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("make", [int, Decimal, str])
def test_in_rows_of_a_program(type_: str, make: Callable[[str], object]) -> None:
    numbers = [number for number in NUMBERS if make is not int or number.lstrip("-").isdigit()]
    session = Session()
    session.execute(f"CREATE STREAM s (ts TIMESTAMP, n {type_}, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
    for number in numbers:
        session.append("s", [{"ts": "2024-05-01", "n": make(number)}, {"ts": "2024-05-01", "n": make("7")}])
    assert session.run("ISTREAM(SELECT n FROM s)").to_arrow()["n"].to_pylist() == [Decimal(7)] * len(numbers)
    assert len(session.dead_letters) == len(numbers)


def test_in_rows_that_are_made_as_they_are_read() -> None:
    columns = pa.schema([("ts", pa.timestamp("us")), ("n", pa.decimal128(5))])
    rows = ({"ts": "2024-05-01", "n": Decimal(number)} for number in [*NUMBERS, "7"])
    session = Session()
    session.stream("s", rows, time="ts", columns=columns)
    assert session.run("ISTREAM(SELECT n FROM s)").to_arrow()["n"].to_pylist() == [Decimal(7)]
    assert len(session.dead_letters) == len(NUMBERS)


def test_whole_numbers_beyond_64_bits() -> None:
    session = Session()
    session.execute(
        "CREATE STREAM s (ts TIMESTAMP, n HUGEINT, i BIGINT, WATERMARK FOR ts AS ts) WITH (connector = 'memory')"
    )
    session.append("s", [{"ts": "2024-05-01", "n": 2**70, "i": 1}, {"ts": "2024-05-01", "n": 1, "i": 2**70}])
    session.append("s", [{"ts": "2024-05-01", "n": 10**5000, "i": 10**5000}])
    assert session.run("ISTREAM(SELECT n, i FROM s)").to_pylist()[0]["n"] == 2**70
    reasons = session.dead_letters["reason"].to_pylist()
    assert len(reasons) == 2
    assert reasons[0] == "column 'i' is BIGINT and cannot hold '1180591620717411303424'"
    reported = Session()
    reported.table("t", [{"n": 2**70}])
    assert reported.run("SELECT n FROM t", emit="latest").to_arrow()["n"].to_pylist() == [2**70]
