"""What is said to whoever is about to follow inputs that nothing but their rows takes on."""

from __future__ import annotations

import pytest

from transom.plan.catalogue import Catalogue
from transom.program.planned import read_program
from transom.program.silence_notes import silence_notes

STREAM = "CREATE STREAM {name} (ts TIMESTAMP, k INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory'{more});\n"
ARRIVAL = "CREATE STREAM a (k INTEGER) WITH (connector = 'memory', time = 'arrival');\n"


@pytest.mark.parametrize(
    ("query", "more", "names"),
    [
        ("DSTREAM(SELECT DISTINCT k FROM s [RANGE 1 MINUTE])", "", "s"),
        ("DSTREAM(SELECT DISTINCT k FROM s [RANGE 1 MINUTE])", ", heartbeat = '1 SECOND'", None),
        ("DSTREAM(SELECT DISTINCT k FROM s [RANGE 1 MINUTE])", ", idle = '1 SECOND'", "s"),
        ("SELECT s.k FROM s [RANGE 1 MINUTE] JOIN t [RANGE 1 MINUTE] ON s.k = t.k", "", "s or t"),
        ("SELECT s.k FROM s [RANGE 1 MINUTE] JOIN t [RANGE 1 MINUTE] ON s.k = t.k", ", idle = '1 SECOND'", "t"),
        ("SELECT window_end, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE) "
         "GROUP BY window_start, window_end", "", "s"),
        ("SELECT k FROM s [PARTITION BY k SESSION 10 SECONDS]", "", "s"),
        ("SELECT k FROM t [ROWS 5] WHERE k IN (SELECT k FROM s [RANGE 1 MINUTE])", ", heartbeat = '1 SECOND'", "t"),
        ("SELECT k FROM s [ROWS 5]", "", None),
        ("ISTREAM(SELECT k FROM s)", "", None),
        ("SELECT k FROM a [RANGE 1 MINUTE]", "", None),
    ],
)  # fmt: skip
def test_inputs_whose_silence_holds_windows_open(query: str, more: str, names: str | None) -> None:
    text = STREAM.format(name="s", more=more) + STREAM.format(name="t", more="") + ARRIVAL + query
    notes = silence_notes(read_program(text, Catalogue()))
    assert [note.split(" come, ")[0] for note in notes] == (
        [] if names is None else [f"note: line 4: while no rows of {names}"]
    )
