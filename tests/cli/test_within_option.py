"""`--within DIR` on every command that takes a query."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import ANSWER, QUERY_FILE, outcome, transom, write_project

OUTSIDE = "leads outside of"
STRAY = QUERY_FILE.replace("data/s.csv", "../secret.csv")


def test_it_begins_at_the_current_folder_and_paths_of_the_file_at_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path / "project")
    monkeypatch.chdir(tmp_path)
    code, _, _ = outcome(capsys, "run", "project/query.cql", "--within", "project", "--checkpoint", "project/kept")
    assert (code, (tmp_path / "project" / "answers" / "out.csv").read_text().startswith(ANSWER[:20])) == (0, True)
    for option in ("--checkpoint", "--dead-letters"):
        code, _, err = outcome(capsys, "run", "project/query.cql", "--within", "project", option, "kept")
        assert (code, OUTSIDE in err) == (1, True)
    code, _, err = outcome(capsys, "run", "project/query.cql", "--within", "nowhere")
    assert (code, "there is no folder 'nowhere'" in err) == (2, True)


@pytest.mark.parametrize("command", [("run",), ("check",), ("explain",), ("explain", "--analyze")])
def test_a_file_that_leaves_the_folder_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    (tmp_path / "secret.csv").write_text("ts,k,a\n")
    query = write_project(tmp_path / "project", STRAY)
    code, out, err = outcome(capsys, *command, query, "--within", query.parent)
    assert (code, out) == (1, "")
    assert OUTSIDE in err and "'../secret.csv'" in err and f"'{query.parent}'" in err
    assert outcome(capsys, "check", query)[0] == 0, "without it a query file is as trusted as a program"


@pytest.mark.nightly
def test_the_shell_keeps_to_it(tmp_path: Path) -> None:
    write_project(tmp_path / "project")
    stray = STRAY.partition("CREATE SINK")[0]
    ended = transom("shell", "--within", "project", folder=tmp_path, given=stray.replace("../secret", "secret"))
    assert ended.returncode == 1 and OUTSIDE in ended.stderr
