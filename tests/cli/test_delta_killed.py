"""A run whose answers are Delta tables, killed again and again: a client sees what an unbroken run shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.cli.commands import transom
from tests.killing import run_through_kills

TEXT = """
CREATE STREAM s (ts TIMESTAMP, item INTEGER, v INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'generator', rows = {rows}, rate = 10, seed = 5, disorder = '2 seconds',
          column.item = 'uniform 1 50 null 0.1', column.v = 'uniform 1 9');
CREATE SINK totals WITH (connector = 'delta', path = '{folder}/totals', emit = 'net');
INSERT INTO totals SELECT item, COUNT(*) AS n, SUM(v) AS total FROM s [ROWS 40] GROUP BY item;
CREATE SINK history WITH (connector = 'delta', path = '{folder}/history', emit = 'lifetimes',
                          commit_interval = '300 MILLISECONDS');
INSERT INTO history SELECT item, v FROM s [RANGE 5 SECONDS] WHERE v > 5;
"""
TABLES = ("totals", "history")


def seen(folder: Path) -> list[list[tuple[Any, ...]]]:
    tables = [pa.table(DeltaTable(str(folder / name)).to_pyarrow_table()).to_pylist() for name in TABLES]
    return [sorted((tuple(row.values()) for row in table), key=repr) for table in tables]


@pytest.mark.nightly
@pytest.mark.parametrize(("runtime", "rows", "batch"), [("local", 4_000, 20), ("spark", 4_000, 40)])
def test_what_a_client_sees_is_what_an_unbroken_run_shows(tmp_path: Path, runtime: str, rows: int, batch: int) -> None:
    programs = []
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
        programs.append(tmp_path / f"{name}.cql")
        programs[-1].write_text(TEXT.format(rows=rows, folder=tmp_path / name))
    done = transom("run", programs[0], "--set", "batch_rows=1000")  # the same answer, whatever the batches
    assert done.returncode == 0, done.stderr
    expected = seen(tmp_path / "whole")
    assert all(expected)
    arguments = (programs[1], "--set", f"batch_rows={batch}")
    run_through_kills(arguments, tmp_path / "kept", runtime)
    assert seen(tmp_path / "broken") == expected
