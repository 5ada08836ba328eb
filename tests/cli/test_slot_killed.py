"""A run that follows a table of PostgreSQL by its slot, killed again and again, and the server too, while the table
changes: in the end the answer is that of the table."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.killing import run_through_kills
from tests.postgres_server import Database, PostgresServer

COLUMNS = "id INTEGER, item INTEGER, v INTEGER, ts TIMESTAMP METADATA FROM 'timestamp', WATERMARK FOR ts AS ts"
TEXT = """
CREATE TABLE t ({columns}) WITH (connector = 'postgres', url = '$PGURL', table = 't', 'slot.name' = '{slot}_one');
CREATE TABLE u ({columns}) WITH (connector = 'postgres', url = '$PGURL', table = 't', 'slot.name' = '{slot}_two');
CREATE SINK totals WITH (connector = 'postgres', url = '$PGURL', table = 'totals', emit = 'net');
INSERT INTO totals SELECT item, COUNT(*) AS n, SUM(v) AS total FROM t GROUP BY item;
CREATE SINK history WITH (connector = 'postgres', url = '$PGURL', table = 'history', emit = 'changes');
INSERT INTO history SELECT id, v FROM u;
"""

BATCH = {"local": 50, "spark": 500}
PAUSE = {"local": 0.05, "spark": 0.5}
"""Seconds between two transactions."""


def work(database: Database, chance: random.Random, count: int, first: int) -> None:
    """Transactions as an application makes them; a third of them is rolled back."""
    for number in range(first, first + count):
        database.execute("BEGIN")
        for _ in range(chance.randrange(1, 4)):
            database.execute(f"INSERT INTO t (item, v) VALUES ({chance.randrange(20)}, {number})")
        database.execute(
            f"UPDATE t SET v = v + 1 WHERE id % 37 = {chance.randrange(37)}",
            f"DELETE FROM t WHERE id % 101 = {chance.randrange(101)}",
            "ROLLBACK" if chance.random() < 0.3 else "COMMIT",
        )


@pytest.mark.nightly
@pytest.mark.parametrize("runtime", ["local", "spark"])
def test_the_answer_is_that_of_the_table(
    postgres_server: PostgresServer, postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    chance = random.Random(47)
    monkeypatch.setenv("PGURL", postgres.url)
    slot = f"{postgres.rows('SELECT current_schema()')[0][0]}_{runtime}"
    postgres.execute(
        "CREATE TABLE t (id serial PRIMARY KEY, item integer, v integer)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "CREATE TABLE made (id integer, v integer, sign integer)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF TG_OP <> 'INSERT' THEN INSERT INTO made VALUES (OLD.id, OLD.v, -1); END IF;"
        " IF TG_OP <> 'DELETE' THEN INSERT INTO made VALUES (NEW.id, NEW.v, 1); END IF;"
        " RETURN NULL; END $$",
        "INSERT INTO t (item, v) SELECT g % 20, g FROM generate_series(1, 300) g",
        "CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note()",
    )
    postgres.close()  # it does not outlive the server
    program = tmp_path / "program.cql"
    program.write_text(TEXT.format(slot=slot, columns=COLUMNS))
    made = 0

    def change() -> None:
        """The table changes while a run is waited for, or else time stands still; but no more than it can read."""
        nonlocal made
        client = Database(postgres.url)
        work(client, chance, chance.randrange(1, 4), made)
        client.close()
        made += 4
        time.sleep(PAUSE[runtime])

    arguments = (program, "--set", f"batch_rows={BATCH[runtime]}")
    run_through_kills(arguments, tmp_path / "kept", runtime, (postgres_server,), change, ("--follow",), ("--end",))
    # To the end: else the last transaction waits, since another one of its instant may come.
    client = Database(postgres.url)
    expected = client.rows("SELECT item, COUNT(*), SUM(v)::text FROM t GROUP BY item")
    assert sorted(client.table("totals")) == sorted(expected) and len(expected) > 10
    signs = "SUM(CASE change WHEN '+' THEN 1 ELSE -1 END)"
    now = client.rows(f"SELECT id, v, ({signs})::int FROM history GROUP BY id, v HAVING {signs} <> 0")
    assert sorted(now) == sorted((id_, v, 1) for id_, v in client.rows("SELECT id, v FROM t"))
    # Rows that came and went in one instant are in no relation, so a history may have fewer changes, and never more.
    went = client.rows("SELECT COUNT(*)::int FROM history WHERE change = '-'")
    assert 0 < went[0][0] <= client.rows("SELECT COUNT(*)::int FROM made WHERE sign < 0")[0][0]
    client.execute(
        f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE '{slot}%'"
    )
    client.close()
