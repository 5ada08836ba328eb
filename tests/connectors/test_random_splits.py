"""Any content, any growth, any cut into batches, blocks, pieces and shares: what is read in pieces is what is read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors.reading_splits import agree, of_batch, of_plan
from tests.profile import examples
from transom.connectors import parquet_rows, text_scan
from transom.connectors.connector import Limits
from transom.connectors.files import FileSource
from transom.connectors.splits import divide
from transom.core.schema import INTEGER, VARCHAR, Schema

COLUMNS = Schema.of(("id", INTEGER), ("name", VARCHAR))
CUTS = (1, 2, 7, 1000)

CSV = [
    b"1",
    b"23",
    b",",
    b",",
    b",",
    b'"',
    b'""',
    b"\n",
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
    b"ab",
    b" ",
    b"\xff",
    b"\xc3\xa9",
]
CSV_RECORDS = [
    b"1,a\n",
    b'2,"b\nc"\r\n',
    b'3,"d ""e"", f"\n',
    b'"4",\n',
    b"\n",
    b"x,y\n",
    b'5,"\n',
    b"6,7,8\n",
    b'9,a"b\n',
]
JSON = [
    b'{"id": 1}',
    b'{"ID": "2", "name": "a"}',
    b'{"id": 3, "name": "\\n\\u00e9"}',
    b"\n",
    b"\n",
    b"\r\n",
    b'"',
    b"{",
    b"\xff",
]
JSON_RECORDS = [b'{"id": 4, "name": null}\n', b'{"id": "x"}\n', b"\n", b'{"name": "b", "id": 5.0}\r\n', b"[1]\n"]


def text(draw: random.Random, kind: str) -> bytes:
    """A piece of text as somebody may write it, from orderly to wild."""
    tokens, records = (CSV, CSV_RECORDS) if kind == "csv" else (JSON, JSON_RECORDS)
    wild = draw.choice((0.0, 0.1, 0.9))
    return b"".join(
        b"".join(draw.choices(tokens, k=draw.randint(1, 6))) if draw.random() < wild else draw.choice(records)
        for _ in range(draw.choice((0, 1, 3, 20, 60)))
    )


def beginning(draw: random.Random, kind: str) -> bytes:
    mark = draw.choice((b"", b"\xef\xbb\xbf"))
    return mark + (draw.choice((b"id,name\n", b'"id","name"\r\n', b'id,"na\nme",name\n')) if kind == "csv" else b"")


def write_parquet(draw: random.Random, path: Path) -> None:
    count = draw.choice((0, 1, 5, 40))
    ids = [draw.choice(("1", "22", "x", None)) for _ in range(count)]
    table = pa.table({"name": pa.array(ids, pa.string()), "id": pa.array(ids, pa.string())})
    pq.write_table(table, path, row_group_size=draw.choice((1, 7, 100)))


def add_to(draw: random.Random, folder: Path) -> None:
    """A new file, or more of one that is there; half a line now and then."""
    kind = draw.choice(("csv", "jsonl", "parquet"))
    path = folder / f"{draw.choice('abcdefgh')}.{kind}"
    if kind == "parquet":
        if not path.exists():
            write_parquet(draw, path)
        return
    more = text(draw, kind)
    if draw.random() < 0.3:
        more = more[: draw.randint(0, len(more))]
    if not path.exists():
        more = beginning(draw, kind) + more
    with path.open("ab") as file:
        file.write(more)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, draw: random.Random) -> None:
    """Blocks and pieces so small that their edges are everywhere."""
    monkeypatch.setattr(text_scan, "_BLOCK", draw.choice((1, 3, 16, 64, 1 << 20)))
    monkeypatch.setattr(text_scan, "SPLIT_RECORDS", draw.choice((1, 3, 10, 1 << 16)))
    monkeypatch.setattr(text_scan, "BLOCK_BYTES", draw.choice((1, 50, 1 << 24)))
    monkeypatch.setattr(parquet_rows, "SPLIT_RECORDS", draw.choice((1, 10, 1 << 16)))


@pytest.fixture
def draw(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def make(tmp_path: Path) -> Any:
    return lambda: FileSource(COLUMNS, {"path": str(tmp_path)}, time_column=None)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(examples(by_day=4, at_night=100)))
def test_files_that_stay_as_they_are(tmp_path: Path, draw: random.Random, make: Any) -> None:
    for _ in range(draw.randint(1, 6)):
        add_to(draw, tmp_path)
    growing = draw.random() < 0.5
    reads = [agree(make, max_rows, {}, growing=growing) for max_rows in CUTS]
    assert all(each.rows == reads[0].rows and each.rejected == reads[0].rejected for each in reads)
    whole = make().plan({}, Limits(), growing=growing)
    groups = divide(whole.splits, draw.randint(1, 5), draw.choice((1, 5, 50)))
    executors = [make(), make()]
    parts = [of_plan(whole, executors[at % 2], group) for at, group in enumerate(groups)]
    assert [row for part in parts for row in part.rows] == reads[0].rows
    assert [row for part in parts for row in part.rejected] == reads[0].rejected


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(1000, 1000 + examples(by_day=1, at_night=100)))
def test_files_that_grow_read_in_both_ways_in_turn(tmp_path: Path, draw: random.Random, make: Any) -> None:
    """One position handed to and fro between the two ways; what was planned is read after more has been written."""
    position: dict[str, Any] = {}
    planning, reading = make(), make()
    growing = draw.random() < 0.7
    for _ in range(25):
        for _ in range(draw.choice((0, 1, 2))):
            add_to(draw, tmp_path)
        max_rows = draw.choice(CUTS)
        if not any(tmp_path.iterdir()):
            continue
        expected = of_batch(reading.read(position, max_rows, growing=growing))
        reach = planning.plan(position, Limits(max_rows), growing=growing)
        add_to(draw, tmp_path)
        assert of_plan(reach, make()) == expected
        position = expected.position
    agree(make, 7, position, growing=False)
