"""Paths mean files of this machine or of a storage, and file systems that are not served are rejected by name."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.cli.commands import outcome, write_project
from transom import OptionError, Session
from transom.session import workspace_of

SERVED = "a plain path or a file:// URI"


@pytest.mark.parametrize("path", ["dbfs:/x", "ftp://host/x", "s3n://bucket/x"])
def test_other_file_systems_are_rejected_and_no_folder_is_made_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (
        f"CREATE TABLE t (a INTEGER) WITH (connector = 'files', path = '{path}.csv')",
        f"CREATE SINK o WITH (connector = 'files', path = '{path}/', format = 'csv')",
        "SET spill = 's3://bucket/x'",
    ):
        with pytest.raises(OptionError, match="there is no file system") as raised:
            Session().execute(text)
        assert SERVED in str(raised.value.remedy)
    session = Session()
    session.table("t", [{"a": 1}])
    with pytest.raises(OptionError, match="there is no file system"):
        session.start("SELECT a FROM t", checkpoint=path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("s3://key:secret@bucket/x", "a path must not hold a password"),
        ("s3://secret@bucket/x", "a path must not hold a password"),
        ("abfs://c:secret@account/x", "a path must not hold a password"),
        ("s3://bucket/a/../b", "goes up by '..'"),
        ("s3:///x", "names no folder of a storage"),
        ("hdfs:/x", "names no folder of a storage"),
        ("s3://b*/x", "names no folder of a storage"),
    ],
)
def test_uris_that_name_no_place_are_rejected_without_their_secrets(path: str, why: str) -> None:
    with pytest.raises(OptionError, match=re.escape(why)) as raised:
        Session().execute(f"CREATE TABLE t (a INTEGER) WITH (connector = 'files', path = '{path}.csv')")
    assert "secret" not in raised.value.what


@pytest.mark.parametrize("option", ["--checkpoint", "--dead-letters"])
def test_other_file_systems_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    query = write_project(tmp_path / "project")
    monkeypatch.chdir(tmp_path)
    code, _, err = outcome(capsys, "run", query, option, "dbfs:/x")
    assert (code, SERVED in err) == (2, True)
    assert os.listdir(tmp_path) == ["project"]


@pytest.mark.parametrize("path", ["file://host/x.csv", "file:x.csv", "file:////x.csv"])
def test_a_file_uri_names_a_whole_path_of_this_machine(path: str) -> None:
    with pytest.raises(OptionError, match="names no file of this machine"):
        Session().execute(f"CREATE TABLE t (a INTEGER) WITH (connector = 'files', path = '{path}')")


def test_a_zero_character_cannot_come_in_by_way_of_a_uri() -> None:
    with pytest.raises(OptionError, match="zero character"):
        Session().execute("CREATE TABLE t (a INTEGER) WITH (connector = 'files', path = 'file:///a%00.csv')")


def test_file_uris_are_paths_wherever_paths_are(tmp_path: Path) -> None:
    folder = tmp_path / "a b%"
    folder.mkdir()
    (folder / "t.csv").write_text("a\n1\n")
    uri = folder.as_uri()
    with Session() as session:
        session.execute(f"""
            SET spill = '{uri}/spill';
            CREATE TABLE t (a INTEGER) WITH (connector = 'files', path = '{uri}/*.csv');
            CREATE SINK o WITH (connector = 'files', path = '{uri}/out/', format = 'csv');
            INSERT INTO o SELECT a + 1 AS b FROM t
        """)
        session.start("SELECT a FROM t", checkpoint=f"{uri}/kept").await_termination(300)
        assert workspace_of(session).catalogue.options["spill"] == str(folder / "spill")
    assert (folder / "out" / "part-000000.csv").read_text().splitlines()[1].endswith(",2")
    assert sorted(os.listdir(folder)) == ["kept", "out", "t.csv"]


def test_a_sink_is_known_to_be_where_a_stream_is_read_however_it_is_written(tmp_path: Path) -> None:
    session = Session()
    with pytest.raises(Exception, match="would be written where 't' is read"):
        session.execute(f"""
            CREATE TABLE t (a INTEGER) WITH (connector = 'files', path = '{tmp_path}');
            CREATE SINK o WITH (connector = 'files', path = '{tmp_path.as_uri()}', format = 'csv');
            INSERT INTO o SELECT a FROM t
        """)
