"""The terminal as a sink, where nobody watches: plain lines."""

from __future__ import annotations

import pyarrow as pa
import pytest

from transom.connectors.connector import Opening, SinkDeclaration
from transom.connectors.open import check_sink, open_sink_of, open_source
from transom.connectors.screen import Screen
from transom.connectors.terminal_sink import TerminalSink
from transom.core.errors import OptionError
from transom.core.schema import Schema
from transom.plan.catalogue import SinkDefinition, TableDefinition

ROWS = pa.record_batch({"k": ["x", None], "n": [1, 20]})


def opened(screen: Screen, name: str = "out", follow: bool = False, **properties: str) -> TerminalSink:
    definition = SinkDefinition(name, properties={"connector": "Terminal", **properties})
    declared = SinkDeclaration(name, definition.properties, screen=screen, follow=follow)
    sink = open_sink_of(definition, declared)(
        Opening(ROWS.schema),
    )
    assert isinstance(sink, TerminalSink)
    return sink


def test_rows_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    sink = opened(Screen())
    sink.write(ROWS)
    assert capsys.readouterr().out == "k,n\nx,1\n,20\n"
    sink.write(ROWS.slice(0, 1))
    sink.close()
    assert capsys.readouterr().out == "x,1\n"


def test_a_table_writes_out_what_would_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    sink = opened(Screen(), format="TABLE")
    sink.write(pa.record_batch({"k": ["\x1b[2J\n", None], "n": [1, 20]}))
    assert capsys.readouterr().out.splitlines() == [
        "k           n",
        "---------  --",
        "\\x1b[2J\\n   1",
        "NULL       20",
    ]


def test_of_the_latest_relation_the_last_snapshot_is_printed_unless_there_is_no_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for follow, expected in ((False, "k,n\nx,1\n"), (True, "k,n\nx,1\n,20\n\nx,1\n\n")):
        sink = opened(Screen(), follow=follow)
        sink.replace(ROWS)
        sink.replace(ROWS)
        sink.replace(ROWS.slice(0, 1))
        sink.close()
        assert capsys.readouterr().out == expected


def test_who_speaks_after_another_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(several=True)
    first, second = opened(screen, "first", format="jsonl"), opened(screen, "second")
    first.write(ROWS.slice(0, 1))
    second.write(ROWS.slice(0, 1))
    second.write(ROWS.slice(0, 1))
    assert capsys.readouterr().out == '-- first\n{"k": "x", "n": 1}\n\n-- second\nk,n\nx,1\nx,1\n'


def test_an_empty_answer_leaves_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    opened(Screen()).close()
    assert capsys.readouterr().out == "k,n\n"


def test_what_a_terminal_cannot_be() -> None:
    with pytest.raises(OptionError, match="a terminal has no format 'parquet'"):
        check_sink(SinkDefinition("out", properties={"connector": "terminal", "format": "parquet"}))
    with pytest.raises(OptionError, match="connector 'terminal' has no property 'path'"):
        check_sink(SinkDefinition("out", properties={"connector": "terminal", "path": "x"}))
    with pytest.raises(OptionError, match="no connector 'terminal' to read from"):
        open_source(TableDefinition("t", Schema.of(("a", pa.int64())), properties={"connector": "terminal"}))
