"""Tables of PostgreSQL that change while they are followed; without a server: test_postgres_log."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.postgres_server import Database
from transom.connectors.connector import Limits, Source
from transom.connectors.open import open_source
from transom.connectors.source import Position
from transom.core.errors import OptionError, SourceError
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue
from transom.session import Session, workspace_of

COLUMNS = """id INTEGER, name VARCHAR, price DECIMAL(10, 2), good BOOLEAN, tags VARCHAR[], seen TIMESTAMP,
    ts TIMESTAMP METADATA FROM 'timestamp', WATERMARK FOR ts AS ts"""


class Followed:
    """A table and the slot of a query that follows it."""

    def __init__(self, database: Database) -> None:
        self.database, self.slot = database, f"s{uuid.uuid4().hex[:12]}"

    def declared(self, columns: str = COLUMNS, key: bool = False, **more: str) -> str:
        properties = {"connector": "postgres", "url": self.database.url, "table": "t", "slot.name": self.slot, **more}
        said = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items() if value)
        return f"CREATE TABLE t ({columns}{', PRIMARY KEY (id)' if key else ''}) WITH ({said}, idle = '1 SECOND')"

    def source(self, **given: Any) -> Source:
        catalogue = Catalogue()
        parse_statements(self.declared(**given), catalogue)
        definition: Any = catalogue.relations["t"]
        return open_source(definition)

    def changes(self, source: Source, position: Position, rows: int | None = None) -> Iterator[tuple[Position, Any]]:
        """Batch by batch: the position behind each, and its changes without their times."""
        while True:
            plan = source.plan(position, Limits(rows))
            again = [[part.rows.to_pylist() for part in source.read_split(split)] for split in plan.splits]
            assert again == [[part.rows.to_pylist() for part in source.read_split(split)] for split in plan.splits]
            found = [row for parts in again for rows_of in parts for row in rows_of]
            position = plan.position
            yield position, [(row["change"], *(value for name, value in row.items() if name not in ("change", "ts")))
                             for row in found]  # fmt: skip
            if plan.ended:
                return

    def rest(self, source: Source, position: Position, rows: int | None = None) -> list[Any]:
        return [change for _, changes in self.changes(source, position, rows) for change in changes]


@pytest.fixture
def followed(postgres: Database) -> Iterator[Followed]:
    postgres.execute(
        "CREATE TABLE t (id int PRIMARY KEY, more bytea, name text, price numeric, good boolean, tags text[],"
        " seen timestamptz)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (1, '', 'it''s', 1.5, true, '{a,NULL,\"b, c\"}', '2024-05-01 02:00+02')",
        "INSERT INTO t (id) VALUES (2)",
    )
    found = Followed(postgres)
    yield found
    postgres.execute(
        f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{found.slot}'",
        f"DROP PUBLICATION IF EXISTS {found.slot}",
    )


FIRST = [
    ("+", 1, "it's", 1.5, True, ["a", None, "b, c"], datetime(2024, 5, 1)),
    ("+", 2, None, None, None, None, None),
]


def test_changes_are_read_in_any_batches_and_again_from_anywhere(followed: Followed) -> None:
    source = followed.source()
    begins = source.plan({}, Limits())
    assert [part.rows.num_rows for split in begins.splits for part in source.read_split(split)] == [2]
    followed.database.execute(
        "INSERT INTO t (id, name, good) VALUES (3, 'x', false), (4, 'y', NULL)",
        "UPDATE t SET price = 2, tags = '{}' WHERE id = 3",
        *("BEGIN", "UPDATE t SET name = 'z' WHERE id = 4", "DELETE FROM t WHERE id = 1", "COMMIT"),
        *("BEGIN", "DELETE FROM t", "ROLLBACK"),
        "UPDATE t SET id = 5 WHERE id = 2",
    )
    none: tuple[Any, ...] = (None,) * 3
    expected = [
        ("+", 3, "x", None, False, None, None), ("+", 4, "y", *none, None),
        ("-", 3, "x", None, False, None, None), ("+", 3, "x", 2, False, [], None),
        ("-", 4, "y", *none, None), ("+", 4, "z", *none, None), ("-", *FIRST[0][1:]),
        ("-", 2, None, *none, None), ("+", 5, None, *none, None),
    ]  # fmt: skip
    for rows in (1, 3, None):
        before: list[Any] = []
        for position, changes in followed.changes(source, begins.position, rows):
            before += changes
            assert before + followed.rest(followed.source(), position) == expected
        assert before == expected
    assert not followed.rest(source, position)


@pytest.mark.nightly
def test_what_the_beginning_shows_does_not_come_again(followed: Followed) -> None:
    """The slot is older than the rows of the beginning, and has changes that these show already."""
    followed.source().plan({}, Limits())
    followed.database.execute("UPDATE t SET name = 'new' WHERE id = 1", "DELETE FROM t WHERE id = 2")
    other = Database(followed.database.url)
    other.execute("BEGIN", "INSERT INTO t (id) VALUES (7)")  # begun before, committed after
    source = followed.source()
    plan = source.plan({}, Limits())
    assert [
        row["name"] for split in plan.splits for part in source.read_split(split) for row in part.rows.to_pylist()
    ] == ["new"]
    followed.database.execute("INSERT INTO t (id) VALUES (8)")
    other.execute("COMMIT")
    other.close()
    assert [change[:2] for change in followed.rest(source, plan.position)] == [("+", 8), ("+", 7)]


@pytest.mark.nightly
def test_a_key_needs_no_rows_from_before(followed: Followed) -> None:
    followed.database.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    with pytest.raises(SourceError, match="before they change") as error:
        followed.source().plan({}, Limits())
    assert "REPLICA IDENTITY FULL" in (error.value.remedy or "")
    source = followed.source(key=True)
    position = source.plan({}, Limits()).position
    followed.database.execute(
        "UPDATE t SET name = 'b' WHERE id = 2", "UPDATE t SET id = 3 WHERE id = 2", "DELETE FROM t WHERE id = 1"
    )
    assert [change[:3] for change in followed.rest(source, position)] == [
        ("+", 2, "b"), ("-", 2, None), ("+", 3, "b"), ("-", 1, None)
    ]  # fmt: skip


@pytest.mark.nightly
def test_a_large_value_that_does_not_change_is_there(followed: Followed) -> None:
    """It is not sent again: it is known from what was before, or nobody knows it."""
    large = "SELECT string_agg(md5(g::text), '') FROM generate_series(1, 1000) g"
    source, keyed = followed.source(), followed.source(key=True)
    position = source.plan({}, Limits()).position
    followed.database.execute(f"UPDATE t SET name = ({large}) WHERE id = 2", "UPDATE t SET good = true WHERE id = 2")
    assert [len(change[2] or "") for change in followed.rest(source, position)] == [0, 32_000, 32_000, 32_000]
    *_, (position, _) = followed.changes(keyed, position)
    followed.database.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT", "UPDATE t SET good = false WHERE id = 2")
    with pytest.raises(SourceError, match="the value of 'name', which is large") as error:
        followed.rest(keyed, position)
    assert "REPLICA IDENTITY FULL" in (error.value.remedy or "")


@pytest.mark.nightly
def test_a_clock_that_is_set_back_makes_no_change_late(followed: Followed) -> None:
    source = followed.source()
    position = dict(source.plan({}, Limits()).position)
    followed.database.execute("INSERT INTO t (id) VALUES (3)")
    ahead = position["time"] + 10**9
    plan = source.plan(position | {"time": ahead}, Limits())
    (rows,) = [part.rows for split in plan.splits for part in source.read_split(split)]
    assert rows.column("ts").cast(pa.int64()).to_pylist() == [ahead] and plan.position["time"] == ahead


@pytest.mark.nightly
def test_what_a_checkpoint_has_counted_is_not_kept(followed: Followed) -> None:
    source = followed.source()
    first = source.plan({}, Limits()).position
    followed.database.execute("INSERT INTO t (id) VALUES (3)")
    *_, (position, changes) = followed.changes(source, first)
    assert len(changes) == 1
    source.settle(position)
    followed.database.execute("INSERT INTO t (id) VALUES (4)")
    assert [change[1] for change in followed.rest(source, position)] == [4]
    with pytest.raises(SourceError, match="moved on") as error:
        followed.rest(followed.source(), first)
    assert "a slot of its own" in (error.value.remedy or "")


@pytest.mark.nightly
def test_what_cannot_be_followed_is_reported(followed: Followed) -> None:
    source = followed.source()
    position = source.plan({}, Limits()).position
    followed.database.execute("TRUNCATE t")
    with pytest.raises(SourceError, match="truncated"):
        followed.rest(source, position)
    for change, says in (("RENAME COLUMN name TO title", "no column 'name' any more"),):
        after = followed.rest
        followed.database.execute(f"ALTER TABLE t {change}", "SELECT pg_drop_replication_slot(slot_name)"
                                  f" FROM pg_replication_slots WHERE slot_name = '{followed.slot}'")  # fmt: skip
        with pytest.raises(SourceError, match="has no column 'name'"):
            followed.source().plan({}, Limits())
        followed.database.execute("ALTER TABLE t RENAME COLUMN title TO name")
        position = (source := followed.source()).plan({}, Limits()).position
        followed.database.execute(f"ALTER TABLE t {change}", "INSERT INTO t (id) VALUES (9)")
        with pytest.raises(SourceError, match=says):
            after(source, position)


@pytest.mark.parametrize(
    ("columns", "more", "says"),
    [
        ("id INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts", {}, "in no column of the table"),
        ("id INTEGER, ts TIMESTAMP METADATA FROM 'offset', WATERMARK FOR ts AS ts", {}, "no 'offset'"),
        (COLUMNS, {"slot.name": "No"}, "no slots called"),
        (COLUMNS, {"slots": "x"}, "no property 'slots'"),
        (COLUMNS, {"url": ""}, "needs a url"),
    ],
)
def test_a_wrong_declaration_is_rejected(columns: str, more: dict[str, str], says: str) -> None:
    class Nowhere:
        url = "postgresql://nowhere"

    with pytest.raises(OptionError, match=says) as error:
        Followed(Nowhere()).source(columns=columns, **more)  # type: ignore[arg-type]
    assert error.value.remedy


@pytest.mark.nightly
def test_a_run_that_resumes_has_every_change_once(followed: Followed, tmp_path: Path) -> None:
    text = f"""{followed.declared()};
        CREATE SINK o WITH (connector = 'postgres', url = '{followed.database.url}', table = 'answers', emit = 'net');
        INSERT INTO o SELECT good, COUNT(*) AS n, SUM(id) AS total FROM t GROUP BY good"""
    for step in range(4):
        session = Session(batch_rows=3)
        for number in range(10 * step, 10 * step + 10):
            followed.database.execute(f"INSERT INTO t (id, good) VALUES ({number + 10}, {number % 2 == 0})")
        followed.database.execute(
            f"DELETE FROM t WHERE id = {10 + 10 * step}", "UPDATE t SET good = NULL WHERE id = 11"
        )
        workspace_of(session).assemble(
            workspace_of(session).prepare(text), checkpoint=str(tmp_path / "kept"), end=False
        ).run()
    session = Session(batch_rows=3)
    workspace_of(session).assemble(
        workspace_of(session).prepare(text), checkpoint=str(tmp_path / "kept"), end=True
    ).run()
    expected = followed.database.rows("SELECT good, COUNT(*), SUM(id)::text FROM t GROUP BY good")
    assert sorted(followed.database.table("answers"), key=repr) == sorted(expected, key=repr)
    assert len(expected) == 3


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_transactions_side_by_side_lead_to_the_table(followed: Followed, seed: int) -> None:
    """With savepoints, begun before the first rows are read and committed after, in any batches and from anywhere."""
    chance = random.Random(seed)
    followed.source().plan({}, Limits())  # a slot is not made while somebody writes
    clients = [Database(followed.database.url) for _ in range(3)]
    busy: set[int] = set()
    source, position, net = followed.source(), Position(), Counter[tuple[Any, ...]]()
    for step in range(300):
        if step < 240:
            at = chance.randrange(3)
            if at not in busy:
                clients[at].execute("BEGIN")
                busy.add(at)
            id_ = 3 * chance.randrange(4) + at + 10  # nobody waits for another one's row
            did = [
                f"INSERT INTO t (id, name) VALUES ({id_}, 's{step}') ON CONFLICT (id) DO UPDATE SET name = 's{step}'",
                f"UPDATE t SET name = name || '.' WHERE id % 3 = {(at + 1) % 3} AND id > 9",
                f"DELETE FROM t WHERE id = {id_}",
            ][chance.randrange(3)]
            saved = chance.random() < 0.3
            clients[at].execute(*["SAVEPOINT a"][:saved], did, *["ROLLBACK TO a"][: saved and chance.random() < 0.5])
            if chance.random() < 0.4:
                clients[at].execute(chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
                busy.remove(at)
        elif busy:
            clients[busy.pop()].execute("COMMIT")
        if step < 40 or (step < 299 and chance.random() < 0.5):
            continue
        plan = source.plan(position, Limits(chance.choice([1, 3, None]) if step < 299 else None))
        for row in (row for split in plan.splits for part in source.read_split(split) for row in part.rows.to_pylist()):
            net[row["id"], row["name"]] += 1 if row["change"] == "+" else -1
            assert net[row["id"], row["name"]] >= 0
        position = plan.position
        if chance.random() < 0.3:
            source.settle(position)
        if chance.random() < 0.3:
            source = followed.source()
    while not plan.ended:
        plan = source.plan(position, Limits())
        for row in (row for split in plan.splits for part in source.read_split(split) for row in part.rows.to_pylist()):
            net[row["id"], row["name"]] += 1 if row["change"] == "+" else -1
        position = plan.position
    assert +net == Counter(followed.database.rows("SELECT id, name FROM t")) and len(+net) > 5
    for client in clients:
        client.close()


@pytest.mark.nightly
def test_with_a_heartbeat_the_last_transaction_does_not_wait(followed: Followed) -> None:
    session = Session()
    columns = COLUMNS.replace("AS ts", "AS ts - INTERVAL '0.5' SECOND")
    text = f"""{followed.declared(columns, heartbeat="0.1 SECOND")};
        CREATE SINK o WITH (connector = 'postgres', url = '{followed.database.url}', table = 'answers', emit = 'net');
        INSERT INTO o SELECT COUNT(*) AS n FROM t"""
    run: Any = workspace_of(session).assemble(workspace_of(session).prepare(text), follow=True)
    for number in (3, 4):
        followed.database.execute(f"INSERT INTO t (id) VALUES ({number})")
        until = time.monotonic() + 60
        while followed.database.table("answers") != [(number,)]:
            assert time.monotonic() < until
            if not run.step():
                run.commit()
                time.sleep(0.05)
    run.close()
