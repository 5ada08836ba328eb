"""A run that is killed twenty times with `kill -9` ends with the files of one that was left in peace."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.cli.commands import transom
from tests.killing import run_through_kills

FORMATS = ("csv", "jsonl", "parquet")
EMITS = ("changes", "lifetimes", "latest")

ROWS = 8_000

DECLARED = """
CREATE STREAM sales (ts TIMESTAMP, seller VARCHAR, price INTEGER, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
    WITH (connector = 'generator', rows = {rows}, rate = 2, seed = 5, disorder = '5 seconds', late = 'dead_letter',
          column.seller = 'choice ann bob eve', column.price = 'uniform 1 9 null 0.1');
"""


def query_file(folder: Path) -> Path:
    """A query for every format and every form of an answer, to one file and to a folder of parts in turn."""
    text = DECLARED.format(rows=ROWS)
    for number, (file_format, emit) in enumerate(itertools.product(FORMATS, EMITS)):
        path = f"{emit}.{file_format}" if number % 2 == 0 else f"{emit}-{file_format}"
        text += f"""
            CREATE SINK s{number}
                WITH (connector = 'files', path = 'out/{path}', format = '{file_format}', emit = '{emit}');
            INSERT INTO s{number}
                SELECT seller, COUNT(*) AS n, SUM(price) AS total FROM sales [ROWS 20] GROUP BY seller;
        """
    folder.mkdir()
    (folder / "sales.cql").write_text(text)
    return folder / "sales.cql"


def shown(folder: Path) -> dict[str, object]:
    """What a reader finds: the bytes of text, the rows of Parquet; the parts of a folder one after the other."""
    content_of: dict[str, object] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        files = sorted(part for part in path.iterdir() if not part.name.startswith(".")) if path.is_dir() else [path]
        if path.name.endswith("parquet"):
            content_of[path.name] = [row for file in files for row in pyarrow.parquet.read_table(file).to_pylist()]
        elif path.name.endswith("csv"):
            parts = [file.read_text().partition("\n") for file in files]
            content_of[path.name] = parts[0][0] + "".join(rows for _, _, rows in parts)
        else:
            content_of[path.name] = "".join(file.read_text() for file in files)
    return content_of


@pytest.mark.nightly
def test_a_run_that_is_killed_again_and_again_shows_what_an_unbroken_one_shows(tmp_path: Path) -> None:
    size = ("--set", "batch_rows=16")
    whole = query_file(tmp_path / "whole")
    assert transom("run", whole, *size, "--dead-letters", whole.parent / "side").returncode == 0
    broken = query_file(tmp_path / "broken")
    arguments = (broken, *size, "--dead-letters", broken.parent / "side")
    run_through_kills(arguments, broken.parent / "kept", "local", end=())
    for sort, count in (("out", 9), ("side", 9)):
        expected = shown(whole.parent / sort)
        assert len(expected) == count and all(expected.values())
        assert shown(broken.parent / sort) == expected
