"""Answers in tables of PostgreSQL."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.docs.pages import pages
from tests.postgres_server import Database, PostgresServer
from tests.profile import NIGHTLY
from transom.connectors import Opening, Resume, SinkDeclaration
from transom.connectors.open import check_sink
from transom.connectors.postgres import Database as DatabaseOfRuns
from transom.connectors.postgres_sink import PostgresSink
from transom.core.errors import OptionError, SinkError, TransomError
from transom.plan.catalogue import SinkDefinition
from transom.session import Session
from transom.testing.connector import SinkPlace, SinkTests

K = pa.field("k", pa.string())
V = pa.field("v", pa.int32())
CHANGE = pa.field("change", pa.string(), nullable=False)


def die(sink: PostgresSink) -> None:
    sink._database.close()


class TestKit(SinkTests):
    forms = SinkTests.forms if NIGHTLY else ("net",)

    @pytest.fixture
    def place(self, postgres: Database) -> SinkPlace:
        properties = {"connector": "postgres", "url": postgres.url, "table": "answers"}
        return SinkPlace(properties, lambda: postgres.table("answers"), die)


class Writer:
    """A sink of the table `answers`, as a run has it; every write is an epoch."""

    def __init__(
        self,
        database: Database,
        *fields: pa.Field,
        form: str = "net",
        proved: tuple[str, ...] | None = None,
        run: str | None = "run/o",
        resume: Resume | None = None,
        **properties: str,
    ) -> None:
        self.schema = pa.schema([CHANGE, *fields] if form == "net" else fields)
        properties = {"connector": "postgres", "url": database.url, "table": "answers", **properties}
        declared = SinkDeclaration("o", properties, run=run)
        self.sink = PostgresSink(declared, Opening(self.schema, resume, replayed=True, form=form, key=proved))
        self.epoch = 0 if resume is None else resume.done

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.sink.close()

    def write(self, *rows: Sequence[Any]) -> None:
        columns = [pa.array(values, f.type) for values, f in zip(zip(*rows, strict=True), self.schema, strict=True)]
        self.sink.write(pa.record_batch(columns, schema=self.schema))
        self.sink.commit(self.epoch, self.sink.prepare(self.epoch))
        self.epoch += 1


def rejected(postgres: Database, *fields: pa.Field, **given: Any) -> TransomError:
    with pytest.raises(TransomError) as error:
        Writer(postgres, *fields, **given)
    assert error.value.remedy
    return error.value


# --- values ----------------------------------------------------------------------------------------------------------


def test_every_type_comes_back(postgres: Database) -> None:
    values = [
        (pa.bool_(), True), (pa.int8(), -1), (pa.int16(), 2), (pa.int32(), 3), (pa.int64(), -(2**63)),
        (pa.float32(), 1.5), (pa.float64(), -0.1), (pa.string(), "it's \"ü\" \\ \n"), (pa.date32(), date(1, 1, 1)),
        (pa.timestamp("us"), datetime(9999, 12, 31, 23, 59, 59, 999999)), (pa.list_(pa.string()), ["a", None, "b,c"]),
        (pa.list_(pa.timestamp("us")), [datetime(2024, 5, 1)]),
    ]  # fmt: skip
    texts = [
        (pa.decimal128(38, 0), Decimal(10**38 - 1), str(10**38 - 1)), (pa.decimal128(10, 2), Decimal("-0.05"), "-0.05"),
        (pa.struct([("a b", pa.int32()), ("c", pa.string())]), {"a b": 1, "c": None}, '{"c": null, "a b": 1}'),
        (pa.list_(pa.list_(pa.int32())), [[1], [2, 3]], "[[1], [2, 3]]"),
    ]  # fmt: skip
    given = [*values, *((type_, value) for type_, value, _ in texts)]
    fields = [pa.field(f"c{at}", type_) for at, (type_, _) in enumerate(given)]
    with Writer(postgres, *fields, form="stream") as writer:
        writer.write([value for _, value in given], [None] * len(given))
    assert postgres.rows("SELECT * FROM answers") == [
        (*(value for _, value in values), *(text for _, _, text in texts)), (None,) * len(given)
    ]  # fmt: skip


@pytest.mark.nightly
def test_numbers_that_are_none(postgres: Database) -> None:
    with Writer(postgres, pa.field("x", pa.float64()), V, proved=("x",)) as writer:
        writer.write(("+", float("nan"), 1), ("+", float("-inf"), 2))
        writer.write(("+", float("nan"), 3), ("-", float("-inf"), 2))
    assert postgres.rows("SELECT x::text, v FROM answers") == [("NaN", 3)]


@pytest.mark.nightly
def test_names_are_as_they_are_written(postgres: Database) -> None:
    names = ("Total", "select", 'a "b"', "change", "c0")
    fields = [pa.field(name, pa.int32()) for name in names]
    postgres.execute('CREATE SCHEMA IF NOT EXISTS "Odd.schema"', 'DROP TABLE IF EXISTS "Odd.schema"."T ""1"""')
    postgres.execute('DROP TABLE IF EXISTS "Odd.schema".transom_commits')
    with Writer(postgres, *fields, proved=("select",), table='"Odd.schema"."T ""1"""') as writer:
        writer.write(("+", 1, 2, 3, 4, 5))
        writer.write(("+", 6, 2, 7, 8, 9))
    assert postgres.rows('SELECT "Total", "select", "a ""b""", change, c0 FROM "Odd.schema"."T ""1"""') == [
        (6, 2, 7, 8, 9)
    ]


def test_what_postgres_cannot_hold_is_reported(postgres: Database) -> None:
    with Writer(postgres, K, form="stream") as writer, pytest.raises(SinkError, match="0x00") as error:
        writer.write(("a\0b",))
    assert "character 0" in (error.value.remedy or "") and not postgres.table("answers")
    assert "63 bytes" in (rejected(postgres, pa.field("x" * 64, pa.int32()), form="stream", table="t").remedy or "")


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_all_columns_may_be_the_key(postgres: Database) -> None:
    with Writer(postgres, K, V, proved=("v", "k")) as writer:
        writer.write(("+", "a", 1), ("+", None, None), ("+", "b", None))
        writer.write(("-", "a", 1), ("-", None, None), ("+", "a", 2))
    assert sorted(postgres.rows("SELECT * FROM answers"), key=repr) == [("a", 2), ("b", None)]


@pytest.mark.nightly
def test_an_answer_of_one_row_needs_no_key(postgres: Database) -> None:
    with Writer(postgres, V, proved=()) as writer:
        writer.write(("+", 1))
        writer.write(("+", 2))
        assert postgres.table("answers") == [(2,)]
        writer.write(("-", 2))
    assert not postgres.table("answers")


@pytest.mark.nightly
def test_a_key_that_is_declared_must_name_a_row(postgres: Database) -> None:
    with Writer(postgres, K, V, key="K") as writer:
        writer.write(("+", "a", 1), ("+", "b", 2))
        writer.write(("-", "a", 1), ("+", "a", 3))
        assert sorted(postgres.table("answers")) == [("a", 3), ("b", 2)]
        with pytest.raises(SinkError, match=r"Key .k.=.b. already exists") as error:
            writer.write(("+", "b", 5))
    assert "does not name a row" in (error.value.remedy or "")
    assert sorted(postgres.table("answers")) == [("a", 3), ("b", 2)], "all or nothing"


def test_the_key_is_the_one_of_the_answer(postgres: Database) -> None:
    assert "SELECT DISTINCT" in (rejected(postgres, K, V).remedy or "")
    assert rejected(postgres, K, V, key="w").remedy == "its columns are k, v"
    assert rejected(postgres, K, V, proved=("k",), key="k, v").remedy == "write key = 'k'"
    assert "one row" in (rejected(postgres, K, V, proved=(), key="v").remedy or "")
    Writer(postgres, K, V, proved=("k",), key="K").sink.close()


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        ("k text", "add it"),
        ("k text, v integer", "ADD UNIQUE NULLS NOT DISTINCT"),
        ("k text UNIQUE, v integer", "ADD UNIQUE NULLS NOT DISTINCT"),  # two rows may have NULL
        ("k text, v integer, UNIQUE (k, v)", "ADD UNIQUE NULLS NOT DISTINCT"),
        ("k text PRIMARY KEY, v boolean", "change the type"),
    ],
)
def test_a_table_that_cannot_take_the_answer_is_rejected(postgres: Database, columns: str, remedy: str) -> None:
    postgres.execute(f"CREATE TABLE answers ({columns})")
    assert remedy in (rejected(postgres, K, V, proved=("k",)).remedy or "")


@pytest.mark.nightly
def test_a_table_may_have_other_types_and_more_columns(postgres: Database) -> None:
    postgres.execute(
        "CREATE TABLE answers (id serial, v bigint, k varchar(9) PRIMARY KEY, at timestamptz DEFAULT now())"
    )
    with Writer(postgres, K, V, proved=("k",)) as writer:
        writer.write(("+", "a", 1))
        with pytest.raises(SinkError, match="null value in column") as error:
            writer.write(("+", None, 1))
        assert "NULL" in (error.value.remedy or "")
    assert postgres.rows("SELECT k, v FROM answers") == [("a", 1)]


INTERVALS = ["1 day 02:00:00", "-10:00:00.0005", None, "00:00:00", "-3 days -01:00:00"]


def test_intervals_are_written_and_read_back(postgres: Database, tmp_path: Path) -> None:
    lines = [f"2024-05-01 00:00:0{i},{i},{text or ''}" for i, text in enumerate(INTERVALS)]
    (tmp_path / "in.csv").write_text("\n".join(["ts,k,w", *lines, ""]))
    there = f"connector = 'postgres', url = '{postgres.url}'"
    Session().execute(
        f"CREATE STREAM s (ts TIMESTAMP, k INTEGER, w INTERVAL, WATERMARK FOR ts AS ts)"
        f" WITH (connector = 'files', path = '{tmp_path}/in.csv');"
        f"CREATE SINK o WITH ({there}, table = 'waits'); INSERT INTO o SELECT ISTREAM k, w FROM s [NOW];"
        f"CREATE SINK n WITH ({there}, table = 'answers', emit = 'net');"
        "INSERT INTO n SELECT w, COUNT(*) AS n FROM s GROUP BY w"
    )
    assert postgres.rows("SELECT k, w::text FROM waits ORDER BY k") == [
        (0, "26:00:00"), (1, "-10:00:00.0005"), (2, None), (3, "00:00:00"), (4, "-73:00:00"),
    ]  # fmt: skip
    assert postgres.rows("SELECT n FROM answers WHERE w = interval '1 day 02:00'") == [(1,)]
    postgres.execute("INSERT INTO waits VALUES (now(), 5, '1 month'), (now(), 6, '400 days -00:00:01')")
    Session().execute(
        f"CREATE TABLE waits (k INTEGER, w INTERVAL) WITH ({there}, table = 'waits');"
        f"CREATE SINK back WITH (connector = 'files', path = '{tmp_path}/back.csv', emit = 'lifetimes');"
        "INSERT INTO back SELECT k, w FROM waits WHERE k <> 5"
    )
    (written,) = [path.read_text() for path in tmp_path.rglob("*") if path.is_file() and "back" in str(path)]
    shown = {int(line.split(",")[0]): line.split(",")[1] or None for line in written.splitlines()[1:]}
    assert shown == {**dict(enumerate(INTERVALS)), 6: "399 days 23:59:59"}


def test_rows_of_somebody_else_are_left_alone(postgres: Database) -> None:
    postgres.execute("CREATE TABLE answers (k text PRIMARY KEY, v integer)", "INSERT INTO answers VALUES ('mine', 1)")
    assert "not of a query" in rejected(postgres, K, V, proved=("k",)).what
    with Writer(postgres, K, V, form="stream") as writer:
        writer.write(("yours", 2))
    assert postgres.table("answers") == [("mine", 1), ("yours", 2)]


@pytest.mark.nightly
def test_a_run_that_begins_replaces_what_another_maintained(postgres: Database) -> None:
    with Writer(postgres, K, V, proved=("k",), run="one/o") as one:
        one.write(("+", "a", 1))
        with Writer(postgres, K, V, proved=("k",), run="two/o") as two:
            assert not postgres.table("answers")
            two.write(("+", "b", 2))
            with pytest.raises(SinkError, match="another one has begun"):
                one.write(("+", "a", 3))
        assert "another one" in rejected(postgres, K, V, proved=("k",), run="one/o", resume=Resume(1, 1)).what
    assert postgres.table("answers") == [("b", 2)]
    assert "maintained" in rejected(postgres, K, V, form="stream").what


def test_a_repeated_epoch_appends_nothing(postgres: Database) -> None:
    with Writer(postgres, V, form="stream") as writer:
        writer.write((1,))
        writer.epoch = 0
        writer.write((1,))
        writer.write((2,))
    assert postgres.table("answers") == [(1,), (2,)]


@pytest.mark.nightly
def test_runs_may_append_to_one_table(postgres: Database) -> None:
    with Writer(postgres, V, form="stream", run="one/o") as one, Writer(postgres, V, form="stream", run=None) as two:
        one.write((1,))
        two.write((2,))
        one.write((3,))
    assert sorted(postgres.table("answers")) == [(1,), (2,), (3,)]
    assert postgres.rows("SELECT run, epoch FROM transom_commits") == [("one/o", 1)], "nobody resumes the other one"
    assert "appended to" in rejected(postgres, V, proved=("v",)).what


# --- servers ---------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_server_that_restarts_is_waited_for(postgres_server: PostgresServer, postgres: Database) -> None:
    postgres.close()
    with Writer(postgres, K, V, proved=("k",)) as writer:
        writer.write(("+", "a", 1))
        postgres_server.stop(signal.SIGINT)
        postgres_server.start()
        writer.write(("+", "a", 2))
    again = Database(postgres.url)
    assert again.table("answers") == [("a", 2)]
    again.close()


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"table": "t"}, "needs a url"),
        ({"url": "$PGURL"}, "needs a table"),
        ({"url": "$PGURL", "table": "a.b.c"}, "names no table"),
        ({"url": "$PGURL", "table": "a.b", "schema": "c"}, "names no table"),
        ({"url": "$PGURL", "table": "t", "key": "a,,b"}, "names no columns"),
        ({"url": "$PGURL", "table": "t", "tabel": "t"}, "no property 'tabel'"),
    ],
)
def test_a_wrong_declaration_is_rejected(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], says: str
) -> None:
    monkeypatch.setenv("PGURL", "postgresql://nobody")
    with pytest.raises(OptionError, match=says) as error:
        check_sink(SinkDefinition("o", properties={"connector": "postgres", **properties}))
    assert error.value.remedy


TEXT = """
CREATE STREAM s (ts TIMESTAMP, v INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = '{folder}/s.csv');
CREATE SINK o WITH (connector = 'postgres', url = '$PGURL', table = 'answers', emit = '{emit}');
INSERT INTO o {query}
"""
HISTORY = TEXT.replace("{emit}", "lifetimes").replace("{query}", "SELECT v FROM s [ROWS 1]")


@pytest.mark.nightly
def test_who_is_not_let_in_is_told_so_at_once(postgres_server: PostgresServer) -> None:
    for url, says, remedy in (
        (
            postgres_server.url().replace("postgres@", "nobody:hush@"),
            'role "nobody" does not exist',
            "user and password",
        ),
        (postgres_server.url().replace("/postgres?", "/nothere?"), '"nothere" does not exist', "name of the database"),
    ):
        with pytest.raises(SinkError, match=says) as error:
            DatabaseOfRuns(url, SinkError, "it").transaction(lambda cursor: None, patience=3600)
        assert remedy in str(error.value.remedy) and "hush" not in str(error.value)


def rows_in(folder: Path) -> None:
    lines = [f"2024-05-01 00:00:{second:02},{second}\n" for second in range(20)]
    (folder / "s.csv").write_text("".join(["ts,v\n", *lines]))


def test_a_server_that_is_not_there_is_reported_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_in(tmp_path)
    monkeypatch.setenv("PGURL", f"postgresql://me:hush-hush@/none?host={tmp_path}")
    with pytest.raises(SinkError, match="cannot be written to") as error:
        Session().execute(HISTORY.format(folder=tmp_path))
    assert "hush" not in str(error.value) and "server runs" in (error.value.remedy or "")


@pytest.mark.nightly
def test_a_history_has_when_a_row_was_valid(
    postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_in(tmp_path)
    monkeypatch.setenv("PGURL", postgres.url)
    Session(batch_rows=6).execute(HISTORY.format(folder=tmp_path))
    at = "timestamp '2024-05-01 00:00:07.5'"
    valid = f"valid_from <= {at} AND (valid_to > {at} OR valid_to IS NULL)"
    assert postgres.rows(f"SELECT v FROM answers WHERE {valid}") == [(7,)]
    assert postgres.rows("SELECT v FROM answers WHERE valid_to IS NULL") == [(19,)]
    assert postgres.rows("SELECT COUNT(*) FROM answers") == [(20,)]


@pytest.mark.nightly
def test_the_page_does_what_it_says(postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (page,) = (each for each in pages() if each.name.endswith("postgres.md"))
    files = {block.arguments[0]: block.text for section in page.sections for block in section.blocks}
    (tmp_path / "sales.csv").write_text(
        "ts,room,amount\n2024-05-01 09:00:00,hall,3\n2024-05-01 09:30:00,lab,4\n2024-05-01 10:30:00,hall,5\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGURL", postgres.url)
    Session().execute(files["totals.cql"])
    assert sorted(postgres.table("totals")) == [("hall", 2, "8"), ("lab", 1, "4")]
    assert sorted(postgres.rows(files["history.sql"].rstrip(";\n"))) == [("hall", 3), ("lab", 4)]
