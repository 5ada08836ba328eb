"""A session that keeps within a folder: what its queries name, and where links lead."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path

import pytest

from transom import OptionError, QueryError, Session
from transom.connectors.connector import Split
from transom.connectors.open import open_source
from transom.core.location import Within
from transom.plan.catalogue import TableDefinition
from transom.session import workspace_of

OUTSIDE = "leads outside of"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder to stay in. Beside it there is a secret, and another folder whose name begins like its own."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / "data" / "a.csv").write_text("a\n1\n")
    (tmp_path / "secret.csv").write_text("a\n42\n")
    (tmp_path / "homely").mkdir()
    (tmp_path / "homely" / "a.csv").write_text("a\n42\n")
    return home


def table(path: object) -> str:
    return f"CREATE TABLE t (a INTEGER) WITH (connector = 'files', path = '{path}')"


def read(home: Path, path: object) -> list[int]:
    with Session(within=home) as session:
        session.execute(table(path))
        return [row["a"] for row in session.run("SELECT a FROM t", emit="latest").to_arrow().to_pylist()]


def test_what_is_inside_is_read_and_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "link.csv").symlink_to(home / "data" / "a.csv")
    (home / "folder").symlink_to(home / "data")
    monkeypatch.chdir(home / "data")
    for path in (home / "data", "a.csv", "../data/*.csv", home / "**" / "a.csv", home / "link.csv", home / "folder"):
        assert set(read(home, path)) == {1}
    with Session(within="..") as session:
        session.execute(f"""
            SET spill = '../spilled';
            {table("a.csv")};
            CREATE SINK o WITH (connector = 'files', path = '../new/out.csv');
            INSERT INTO o SELECT a FROM t;
        """)
    assert (home / "new" / "out.csv").read_text().endswith(",1\n")


@pytest.mark.parametrize(
    "path",
    ["{up}/secret.csv", "{up}/*.csv", "{home}/../secret.csv", "{home}/*/../../*.csv", "{up}/homely/a.csv", "../**",
     "{home}/data/../../secret.csv", "/etc/passwd", "file://{up}/secret.csv", "{up}"],
)  # fmt: skip
def test_paths_that_lead_outside_are_rejected(home: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(home)
    with pytest.raises(OptionError, match=OUTSIDE) as raised:
        read(home, path.format(up=home.parent, home=home))
    assert f"'{home}'" in raised.value.what


@pytest.mark.parametrize("path", ["file.csv", "*.csv", "folder", "folder/*.csv", "**/*.csv", "f[i]le.csv", "far/x.csv"])
def test_links_that_lead_outside_are_rejected(home: Path, path: str) -> None:
    (home / "file.csv").symlink_to(home.parent / "secret.csv")
    (home / "folder").symlink_to(home.parent / "homely")
    (home / "far").symlink_to(home.parent / "nowhere")
    with pytest.raises(OptionError, match=OUTSIDE):
        read(home, home / path)


def test_a_link_that_comes_while_a_query_runs_is_rejected(home: Path) -> None:
    text = f"""
        CREATE STREAM s (a INTEGER) WITH (connector = 'files', path = '{home}/data', time = 'arrival');
        SELECT a FROM s
    """
    with Session(within=home) as session:
        query = session.start(text, follow=True)
        while not query.status.rows_out:
            time.sleep(0.01)
        (home / "data" / "b.csv").symlink_to(home.parent / "secret.csv")
        with pytest.raises(OptionError, match=OUTSIDE):
            query.await_termination(timeout=60)


def test_a_task_opens_nothing_outside(home: Path) -> None:
    """What travels to another process knows its bounds, whatever it is reported to read."""
    with Session(within=home) as session:
        session.execute(table(home / "data"))
        catalogue = pickle.loads(pickle.dumps(workspace_of(session).catalogue))
    definition = catalogue.relations["t"]
    assert isinstance(definition, TableDefinition) and catalogue.within == Within(os.path.realpath(home))
    (home / "data" / "b.csv").symlink_to(home.parent / "secret.csv")
    source = open_source(definition, catalogue.within)
    for piece in (Split("b.csv", [0, 0], 1), Split("../../secret.csv", [0, 0], 1)):
        with pytest.raises(OptionError, match=OUTSIDE):
            list(source.read_split(piece))


@pytest.mark.parametrize("name", ["../out.csv", "../out/", "link.csv", "folder/", "folder/out.csv"])
def test_sinks_outside_are_rejected(home: Path, name: str) -> None:
    (home / "link.csv").symlink_to(home.parent / "secret.csv")
    (home / "folder").symlink_to(home.parent / "homely")
    with Session(within=home) as session, pytest.raises(OptionError, match=OUTSIDE):
        session.execute(f"CREATE SINK o WITH (connector = 'files', path = '{home}/{name}', format = 'csv')")


@pytest.mark.parametrize("link", [".out.csv.parts", ".out.csv.new"])
def test_what_a_sink_writes_on_the_way_stays_inside_too(home: Path, link: str) -> None:
    (home / link).symlink_to(home.parent / ("homely" if link.endswith("parts") else "secret.csv"))
    with Session(within=home) as session:
        session.execute(table(home / "data"))
        session.execute(f"CREATE SINK o WITH (connector = 'files', path = '{home}/out.csv')")
        with pytest.raises(OptionError, match=OUTSIDE):
            session.execute("INSERT INTO o SELECT a FROM t")
    assert (home.parent / "secret.csv").read_text() == "a\n42\n"
    assert os.listdir(home.parent / "homely") == ["a.csv"]


def test_folders_of_the_session_are_held_as_well(home: Path) -> None:
    with Session(within=home) as session:
        session.execute(table(home / "data"))
        with pytest.raises(OptionError, match=OUTSIDE):
            session.execute("SET spill = '/tmp/elsewhere'")
        with pytest.raises(OptionError, match=OUTSIDE):
            session.start("SELECT a FROM t", checkpoint=str(home.parent / "x"))
        with pytest.raises(OptionError, match=OUTSIDE):
            workspace_of(session).assemble(
                workspace_of(session).prepare("SELECT a FROM t"), dead_letters=str(home.parent / "x")
            )
    with pytest.raises(OptionError, match=OUTSIDE):
        Session(within=home, spill=str(home.parent)).execute(table(home / "data"))
    with pytest.raises(OptionError, match="there is no folder"):
        Session(within=home / "nowhere")
    assert not (home.parent / "x").exists()


def test_no_statement_changes_it(home: Path) -> None:
    with Session(within=home) as session:
        with pytest.raises(OptionError, match="no option 'within'"):
            session.execute("SET within = '/'")
        with pytest.raises((OptionError, QueryError), match="no property 'within'"):
            session.execute(table(home.parent / "secret.csv").replace("path =", "within = '/', path ="))
        with pytest.raises(OptionError, match=OUTSIDE):
            session.execute(table(home.parent / "secret.csv"))
