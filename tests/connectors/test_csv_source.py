from __future__ import annotations

import csv
import io
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.reading import read_all
from transom.connectors import lines
from transom.connectors.csv_lines import split_records
from transom.connectors.files import FileSource
from transom.core.errors import SourceError
from transom.core.schema import DOUBLE, INTEGER, TIMESTAMP, VARCHAR, Schema

COLUMNS = Schema.of(("id", INTEGER), ("name", VARCHAR), ("ts", TIMESTAMP))
MAY = datetime(2024, 5, 1)


def source(path: Path, columns: Schema = COLUMNS, **properties: str) -> FileSource:
    return FileSource(columns, {"path": str(path), **properties}, time_column="ts" if "ts" in columns.names else None)


def written(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def names(path: Path, **properties: str) -> list[str | None]:
    everything = read_all(source(path, COLUMNS, **properties))
    assert everything.reasons == []
    return [row["name"] for row in everything.rows]


def test_columns_are_found_by_name_in_any_case_and_order(tmp_path: Path) -> None:
    path = written(tmp_path, "TS,extra, Name ,ID\n2024-05-01,x,ann,1\n2024-05-01,y,bob,2\n")
    everything = read_all(source(path))
    assert everything.rows == [{"id": 1, "name": "ann", "ts": MAY}, {"id": 2, "name": "bob", "ts": MAY}]
    assert everything.rejected == []


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = written(tmp_path, "id,nome,ts\n1,ann,2024-05-01\n")
    with pytest.raises(SourceError) as error:
        source(path).read({}, 10)
    assert "a.csv" in error.value.what
    assert "'name'" in error.value.what
    assert "id, nome, ts" in (error.value.remedy or "")


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'name' 2 times"):
        source(written(tmp_path, "id,Name,NAME,ts\n")).read({}, 10)
    assert names(written(tmp_path, "id,name,NAME,ts\n1,a,b,2024-05-01\n")) == ["a"]


def test_only_the_bad_rows_are_rejected_each_with_its_place_reason_and_text(tmp_path: Path) -> None:
    lines = [
        "id,name,ts",
        "1,good,2024-05-01",
        "x,text,2024-05-01",
        "2147483648,overflow,2024-05-01",
        "1.5,fraction,2024-05-01",
        "2,few",
        "3,many,2024-05-01,more",
        "4,no time,",
        "5,bad date,2024-02-30",
        "6,far,10000-01-01",
        "7,last,9999-12-31 23:59:59.999999",
        "8,good,2024-05-01",
        "x,both,never",
    ]
    everything = read_all(source(written(tmp_path, "\n".join(lines) + "\n")))
    assert [row["id"] for row in everything.rows] == [1, 8]
    assert everything.reasons == [
        "column 'id' is INTEGER and cannot hold 'x'",
        "column 'id' is INTEGER and cannot hold '2147483648'",
        "column 'id' is INTEGER and cannot hold '1.5'",
        "the line has 2 fields where the header has 3",
        "the line has 4 fields where the header has 3",
        "the time column 'ts' is NULL",
        "column 'ts' is TIMESTAMP and cannot hold '2024-02-30'",
        "column 'ts' is TIMESTAMP and cannot hold '10000-01-01'",
        "the time column 'ts' is the end of time, at which nothing can happen",
        "column 'id' is INTEGER and cannot hold 'x'; column 'ts' is TIMESTAMP and cannot hold 'never'",
    ]
    assert [row["raw"] for row in everything.rejected] == [*lines[2:11], lines[12]]
    assert [row["position"].rpartition(", ")[2] for row in everything.rejected] == [
        f"line {number}" for number in (3, 4, 5, 6, 7, 8, 9, 10, 11, 13)
    ]


def test_bytes_that_are_no_text_spoil_their_own_line(tmp_path: Path) -> None:
    path = written(
        tmp_path, b"id,name,ts\n1,a\xff,2024-05-01\n2,\xc3\xa9,2024-05-01\n3,\xe2\x82,2024-05-01\n4,d,2024-05-01\n"
    )
    everything = read_all(source(path))
    assert [row["name"] for row in everything.rows] == ["é", "d"]
    assert everything.reasons == ["the line is not valid UTF-8 (byte 0xff)", "the line is not valid UTF-8 (byte 0xe2)"]
    assert everything.rejected[0]["raw"] == "1,a\\xff,2024-05-01"


def test_numbers_are_times_only_with_a_unit(tmp_path: Path) -> None:
    path = written(tmp_path, "id,name,ts\n1,a,1714521600\n2,b,2024-05-01\n")
    everything = read_all(source(path))
    assert [row["id"] for row in everything.rows] == [2]
    assert "time_unit" in everything.reasons[0]
    assert [row["ts"] for row in read_all(source(path, time_unit="s")).rows] == [MAY, MAY]


def test_quotes(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'id,name,ts\n1,"a, b",2024-05-01\n2,"say ""hi""",2024-05-01\n3,"two\nlines\r\n",2024-05-01\n'
        '4,5" disk,2024-05-01\n5,"",2024-05-01\n6,,2024-05-01\n"7","""","2024-05-01"\n',
    )
    assert names(path) == ["a, b", 'say "hi"', "two\nlines\r\n", '5" disk', "", None, '"']


def test_an_open_quote_spoils_its_own_line(tmp_path: Path) -> None:
    path = written(tmp_path, 'id,name,ts\n1,"open,2024-05-01\n2,b,2024-05-01\n3,"c",2024-05-01\n4,"d,2024-05-01')
    everything = read_all(source(path))
    assert [row["id"] for row in everything.rows] == [2, 3]
    assert [row["raw"] for row in everything.rejected] == ['1,"open,2024-05-01', '4,"d,2024-05-01']
    assert set(everything.reasons) == {"the line has a quote that is opened and not closed"}


def test_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfid,name,ts\r\n1,a,2024-05-01\r\n\r\n\n2,b,2024-05-01")
    assert names(path) == ["a", "b"]
    everything = read_all(source(written(tmp_path, b'id,name,ts\n1,a\rb,2024-05-01\n2,"c\rd",2024-05-01\n')))
    assert [row["name"] for row in everything.rows] == ["c\rd"]
    assert everything.reasons == ["the line has a line end outside quotes"]


def test_delimiters_and_null_texts(tmp_path: Path) -> None:
    assert names(written(tmp_path, "id;name;ts\n1;a,b;2024-05-01\n"), delimiter=";") == ["a,b"]
    assert names(written(tmp_path, "id\tname\tts\n1\ta,b\t2024-05-01\n", "a.tsv")) == ["a,b"]
    path = written(tmp_path, 'id,name,ts\n\\N,\\N,2024-05-01\n1,"\\N",2024-05-01\n2,,2024-05-01\n')
    assert names(path, null="\\N") == [None, "\\N", ""]


def test_quoted_nothing_is_null_where_it_cannot_be_text(tmp_path: Path) -> None:
    everything = read_all(source(written(tmp_path, 'id,name,ts\n"","",2024-05-01\n')))
    assert everything.rows == [{"id": None, "name": "", "ts": MAY}]


def test_one_column_and_an_empty_line_is_null(tmp_path: Path) -> None:
    path = written(tmp_path, "x\n1.5\n\n2\n")
    assert [row["x"] for row in read_all(source(path, Schema.of(("x", DOUBLE)))).rows] == [1.5, None, 2.0]


@pytest.mark.parametrize("text", ["", "\n\n", "id,name,ts", "id,name,ts\n"])
def test_files_without_rows(tmp_path: Path, text: str) -> None:
    everything = read_all(source(written(tmp_path, text)))
    assert everything.rows == []
    assert everything.rejected == []


def test_strings_of_megabytes(tmp_path: Path) -> None:
    long = "x" * 20_000_000
    path = written(tmp_path, f'id,name,ts\n1,{long},2024-05-01\n2,"{long}\n{long}",2024-05-01\n3,c,2024-05-01\n')
    assert names(path) == [long, f"{long}\n{long}", "c"]


def test_a_restart_at_every_position_gives_exactly_the_rest(tmp_path: Path) -> None:
    text = 'id,name,ts\n1,"a\nb",2024-05-01\nx,bad,2024-05-01\n\n2,c,2024-05-01\n3,"d,2024-05-01\n4,e\r\n5,f,2024-05-01'
    path = written(tmp_path, text)
    whole = read_all(source(path))
    assert [row["id"] for row in whole.rows] == [1, 2, 5]
    steps = read_all(source(path), step=1)
    assert (steps.rows, steps.rejected) == (whole.rows, whole.rejected)
    for position in steps.positions:
        before = read_all(source(path), step=1)
        taken = before.positions.index(position) + 1
        rest = read_all(source(path), position, step=2)
        assert len(rest.rows) + len(rest.rejected) == max(0, 6 - taken)
        assert whole.rows[len(whole.rows) - len(rest.rows) :] == rest.rows
        assert whole.rejected[len(whole.rejected) - len(rest.rejected) :] == rest.rejected


fields = st.text(alphabet='ab",\n\r é', max_size=6)


@given(st.lists(st.lists(fields, min_size=2, max_size=2), max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_well_formed_text_is_split_where_the_standard_library_splits_it(rows: list[list[str]], end: str) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    data = out.getvalue().encode()
    cut = split_records(data, ",", True)
    records = [data[start:stop] for start, stop in zip([0, *(cut.ends + 1)], cut.ends, strict=False)]
    assert cut.broken == {}
    assert [next(csv.reader(io.StringIO(record.decode(), newline=""))) for record in records] == rows


@given(st.text(alphabet='a",\n', max_size=40), st.integers(0, 40))
def test_where_records_end_does_not_depend_on_what_follows(text: str, length: int) -> None:
    """Cutting the file anywhere gives a beginning of the same records: blocks can be read one by one."""
    whole = split_records(text.encode(), ",", False)
    part = split_records(text[:length].encode(), ",", False)
    assert np.array_equal(part.ends, whole.ends[: len(part.ends)])
    complete = part.ends[-1] + 1 if len(part.ends) else 0
    assert part.broken == {start: why for start, why in whole.broken.items() if start < complete}


@given(st.text(alphabet='a1",\n\r', max_size=60), st.integers(1, 4), st.integers(1, 9))
def test_any_text_in_any_steps_and_blocks(
    tmp_path_factory: pytest.TempPathFactory, text: str, step: int, chunk: int
) -> None:
    """The same rows and rejects, however few rows are requested and however small the pieces that are read."""
    path = written(tmp_path_factory.getbasetemp(), "id,name\n" + text)
    columns = Schema.of(("id", INTEGER), ("name", VARCHAR))
    whole = read_all(source(path, columns))
    with patch.object(lines, "_CHUNK", chunk), patch.object(lines, "BLOCK_BYTES", 1):
        steps = read_all(source(path, columns), step=step)
    assert (steps.rows, steps.rejected) == (whole.rows, whole.rejected)
