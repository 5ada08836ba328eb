"""`transom run` as a person sees it, through a pseudo-terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import ANSWER, QUERY_FILE, ROWS, write_project
from tests.cli.terminal import CTRL_C, terminal
from transom.cli.display import lines
from transom.program.status import InputStatus, OperatorStatus, Status

ON_THE_TERMINAL = QUERY_FILE.replace("connector = 'files', path = 'answers/out.csv', ", "connector = 'terminal', ")


def test_what_the_display_says() -> None:
    status = Status(
        name="out",
        inputs=(
            InputStatus("smoke", 1_200, 1_000, 3, 2, 195, 0, False, {}),
            InputStatus("rooms", 40, 40, 0, 0, 0, None, True, {}),
        ),
        operators=(
            OperatorStatus(1, "StreamScan", "scan", 0, 1_000, 0, 0, 0.1),
            OperatorStatus(2, "Join", "ring_hash", 1_040, 12, 0, 2_500, 0.1, 40),
        ),
        progress=0,
        held_back_by="smoke",
        rows_out=12,
        steps=3,
        finished=False,
    )
    assert lines(status, [600, 0], silent=True) == [
        "out: 1,240 rows in, 12 rows out, 600 rows/s, up to 1970-01-01 00:00:00",
        "  nothing comes out: time is held back by smoke",
        "  input  rows in  rows/s  waiting  late  rejected                up to",
        "  smoke    1,200     600      195     3         2  1970-01-01 00:00:00",
        "  rooms       40       0        0     0         0              its end",
        "  operator           rows in  rows out  rows kept   state",
        "  #2 join ring_hash    1,040        12         40  2.5 kB",
        "  #1 scan                  0     1,000          0     0 B",
    ]
    assert lines(status, [600, 0], False, 0.125)[0].endswith("600 rows/s, 0.12 s a batch, up to 1970-01-01 00:00:00")
    assert lines(status, [600, 0], silent=False)[1] == "  time is held back by smoke"


@pytest.mark.nightly
def test_ctrl_c_on_a_display_and_the_command_that_goes_on(tmp_path: Path) -> None:
    """The display says what time waits for; stopped and resumed, the files are those of an unbroken run."""
    write_project(tmp_path)
    data = tmp_path / "data" / "s.csv"
    rows = ROWS.splitlines(keepends=True)
    data.write_text("".join(rows[:4]))
    arguments = ("run", "query.cql", "--checkpoint", "kept", "--set", "batch_rows=1", "--dead-letters", "side")
    with terminal(*arguments, "--follow", folder=tmp_path) as seen:
        seen.expect("nothing comes out: time is held back by s")
        with data.open("a") as file:
            file.write("".join(rows[4:6]))
        seen.expect("5 rows in")
        seen.expect("rejected")
        seen.type(CTRL_C)
        seen.expect("out: 3 rows out, up to 2024-05-01 00:00:06")
        seen.expect("s  5 rows in = 3 used + 0 late + 1 rejected + 1 waiting")
        seen.expect(
            "to resume from here: transom run query.cql --checkpoint kept --set batch_rows=1 --dead-letters side "
            "--follow"
        )
        assert seen.wait() == 130
    assert (tmp_path / "answers" / "out.csv").read_text() == "".join(ANSWER.splitlines(keepends=True)[:4])
    data.write_text(ROWS)
    with terminal(*arguments, "--end", folder=tmp_path) as seen:
        seen.expect("out: 4 rows out, to the end of its input")
        assert seen.wait() == 0
    write_project(tmp_path / "unbroken")
    with terminal(*arguments, "--end", folder=tmp_path / "unbroken") as seen:
        assert seen.wait() == 0
    whole = (tmp_path / "unbroken" / "answers" / "out.csv").read_text()
    assert (tmp_path / "answers" / "out.csv").read_text() == whole == ANSWER
    sides = [
        "".join(part.read_text() for part in sorted((folder / "side" / "out").glob("part-*")))
        for folder in (tmp_path, tmp_path / "unbroken")
    ]
    assert sides[0] == sides[1] and sides[0].count("\n") == 2


@pytest.mark.nightly
@pytest.mark.parametrize("emit", ["lifetimes", "latest"])
def test_a_terminal_sink_on_a_terminal(tmp_path: Path, emit: str) -> None:
    write_project(tmp_path, ON_THE_TERMINAL.replace("'lifetimes'", f"'{emit}'"))
    rows = (tmp_path / "data" / "s.csv").read_text()
    with terminal("run", "query.cql", "--follow", folder=tmp_path) as seen:
        if emit == "latest":
            seen.expect("┃ k ┃ total ┃")
            (tmp_path / "data" / "s.csv").write_text(rows + "2024-05-01 00:00:09,z,6\n")
            seen.expect("│ x │     4 │")
        else:
            seen.expect("x      3  2024-05-01 00:00:03  2024-05-01 00:00:05")
        seen.type(CTRL_C)
        seen.expect("rows in = ")
        seen.expect("interrupted")
        assert seen.wait() == 130


@pytest.mark.nightly
def test_rows_go_to_a_file_while_the_display_is_watched(tmp_path: Path) -> None:
    write_project(tmp_path, ON_THE_TERMINAL)
    answer = tmp_path / "answer.csv"
    with terminal("run", "query.cql", folder=tmp_path, output=answer) as seen:
        seen.expect("starting")
        seen.expect("out: 4 rows out, to the end of its input")
        assert seen.wait() == 0
    assert answer.read_text() == ANSWER
