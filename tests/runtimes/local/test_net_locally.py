"""Net changes in this process: a batch is what is committed together, whatever happens in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.net_table import NetTable
from tests.runtimes.local.readings import declarations, start, write_inputs
from tests.runtimes.local.test_local_run import crash
from tests.runtimes.local.test_silence_locally import BEATS, Followed
from transom.connectors import registry
from transom.connectors.connector import Connector, Opening, Sink, SinkDeclaration
from transom.session import Session

COUNTS = "SELECT room, COUNT(*) AS n, MAX(celsius) AS most FROM heat [ROWS 7] GROUP BY room"


def text(folder: Path, query: str = COUNTS) -> str:
    index = f"connector = 'files', path = '{folder / 'out'}/', format = 'parquet', emit = 'net'"
    return f"{declarations(folder, 'csv')} CREATE SINK out WITH ({index}); INSERT INTO out {query}"


def table_of(folder: Path, key: tuple[int, ...] | None = (0,)) -> tuple[NetTable, int]:
    """The table that the parts lead to, and how many changes they have."""
    table, changes = NetTable(key), 0
    for part in sorted((folder / "out").glob("part-*")):
        rows = pq.read_table(part)
        changes += len(rows)
        table.apply(rows.combine_chunks().to_batches()[0] if len(rows) else pa.RecordBatch.from_pylist([], rows.schema))
    return table, changes


@pytest.fixture(scope="module")
def latest(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    folder = tmp_path_factory.mktemp("latest")
    write_inputs(folder, "csv")
    with Session() as session:
        session.execute(declarations(folder, "csv"))
        found = sorted(tuple(row.values()) for row in session.run(COUNTS, emit="latest").to_pylist())
    assert len(found) == 5
    return found


def test_all_that_is_committed_together_is_one_batch(tmp_path: Path, latest: list[tuple[Any, ...]]) -> None:
    changes = {}
    for every in (1, 4, 1_000):
        folder = tmp_path / str(every)
        write_inputs(folder, "csv")
        run = start(text(folder), every=every)
        run.run()
        table, changes[every] = table_of(folder)
        assert sorted(table.rows) == latest
        assert run.status()[0].rows_out == changes[every]
    assert changes[1] > changes[4] > changes[1_000] == 5


@pytest.mark.parametrize("every", [2, 5])
def test_a_run_that_crashes_goes_on_to_the_same_table(
    tmp_path: Path, latest: list[tuple[Any, ...]], every: int
) -> None:
    write_inputs(tmp_path, "csv")
    crashes = 0
    while True:
        run = start(text(tmp_path), checkpoint=str(tmp_path / "kept"), end=True, every=every)
        for _ in range(every + 1):  # one more than is kept
            if not run.step():
                break
        if run.finished:
            run.run()
            break
        table_of(tmp_path)  # what is seen at any time holds together
        crash(run)
        crashes += 1
    assert crashes >= 2
    assert sorted(table_of(tmp_path)[0].rows) == latest


def test_what_expires_in_silence_is_reported_in_silence() -> None:
    counts = "SELECT host, COUNT(*) AS n FROM beats [RANGE 5 SECONDS] GROUP BY host"
    followed = Followed(BEATS, counts, every=1, emit="net")
    followed.send("beats", {"host": "a"}, {"host": "b"})
    followed.sleep(1)
    followed.send("beats", {"host": "b"})
    followed.sleep(10)
    rows = [tuple(row.values()) for row in followed.query.table().to_pylist()]
    assert {row for row in rows if row[0] == "-"} == {("-", "a", 1), ("-", "b", 2)}
    assert ("+", "b", 2) in rows and not followed.run.jobs[0].engine.holds_rows
    followed.run.close()


@pytest.mark.parametrize(
    ("query", "key"),
    [
        (COUNTS, ("room",)),
        ("SELECT MAX(celsius) AS most FROM heat", ()),
        ("SELECT room FROM heat [RANGE 5 SECONDS]", None),
        (
            "SELECT n, room AS place FROM (SELECT room, COUNT(*) AS n FROM heat GROUP BY room) AS r WHERE n > 1",
            ("place",),
        ),
    ],
)
def test_a_sink_is_reported_the_key(
    tmp_path: Path, query: str, key: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Opening] = []

    class Noting(Sink):
        def write(self, batch: pa.RecordBatch) -> None: ...

        def commit(self, epoch: int, token: Any) -> None: ...

    def opened(declared: SinkDeclaration, opening: Opening) -> Sink:
        seen.append(opening)
        return Noting()

    monkeypatch.setitem(registry._CONNECTORS, "noting", Connector(sink=opened))
    write_inputs(tmp_path, "csv")
    for emit in ("net", "changes"):
        sink = f"CREATE SINK out WITH (connector = 'noting', emit = '{emit}'); INSERT INTO out {query}"
        start(declarations(tmp_path, "csv") + sink).run()
    assert [opening.key for opening in seen] == [key, None]
    with Session() as session:
        session.execute(declarations(tmp_path, "csv") + "CREATE SINK out WITH (connector = 'noting', emit = 'net')")
        reported = session.explain(f"INSERT INTO out {query}")
    expected = "as a bag: the plan proves no key" if key is None else f"by ({key[0]})" if key else "of one row"
    assert f"net changes {expected}" in reported.splitlines()
