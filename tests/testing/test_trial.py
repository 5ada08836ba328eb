from __future__ import annotations

from pathlib import Path

import pytest

from transom import LateRowError, OptionError, QueryError, SourceError
from transom.testing import Trial

READINGS = """
CREATE STREAM readings (ts TIMESTAMP, room VARCHAR, celsius INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH (connector = 'files', path = 'nowhere/', format = 'csv', late = 'dead_letter');
"""
HOT = READINGS + "SELECT room FROM readings [RANGE 10 SECONDS] WHERE celsius > 50;"
TWO = """
CREATE STREAM a (ts TIMESTAMP, x INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory', idle = '10 SECONDS');
CREATE STREAM b (ts TIMESTAMP, x INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
ISTREAM(SELECT x FROM a [NOW] UNION ALL SELECT x FROM b [NOW]);
"""


def test_an_answer_is_out_once_progress_is_past_it() -> None:
    trial = Trial(HOT)
    assert (trial.progress(), trial.held_back_by()) == (None, "readings")
    trial.send("readings", "0 hall 60")
    assert str(trial.answer()) == ""
    assert trial.progress() == "-2"
    trial.send("readings", "2 lab 20")
    assert str(trial.answer()) == ""
    trial.send("readings", "2.5 lab 20")
    trial.answer().expect("0 + hall")
    trial.send("Readings", "12 lab 20")
    trial.answer().expect("0 + hall")
    trial.end()
    assert (trial.progress(), trial.held_back_by()) == ("the end", None)
    trial.answer().expect("0 + hall\n10 - hall")


def test_the_connectors_of_a_file_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "hot.cql"
    sink = "CREATE SINK hot WITH (connector = 'files', path = 'hot.csv');"
    path.write_text(HOT.replace("SELECT room", sink + "INSERT INTO hot SELECT room"))
    trial = Trial(path, {"readings": "0 hall 60"})
    trial.end()
    trial.answer("HOT").expect("0 + hall \n 10 - hall")
    assert list(tmp_path.iterdir()) == [path]


def test_late_and_rejected_rows_are_reported() -> None:
    trial = Trial(HOT, {"readings": "10 a 60 \n 7.9 b 60 \n 8 c 60 \n NULL d 60"})
    trial.end()
    assert trial.answer().rejected == (
        "readings: 7.9 b 60 (late: came after the watermark)",
        "readings: NULL d 60 (the timestamp is missing)",
    )
    trial.answer().expect_at("at 10: a; c")


def test_rejected_rows_of_all_types_are_reported_as_they_were_written() -> None:
    trial = Trial("""
    CREATE STREAM s (
        a INTEGER, b BIGINT, c DOUBLE, d DECIMAL(12, 10), e BOOLEAN, f DATE, at TIMESTAMP, g TIMESTAMP, h VARCHAR,
        WATERMARK FOR at AS at
    ) WITH (connector = 'memory');
    SELECT a FROM s [NOW];
    """)
    rows = [
        "1 -1 9223372036854775807 nan 0.0000000001 true 2024-05-01 1.5 'it''s \"so\" \\'",
        "2 NULL 0 -inf -1.5000000000 false 0001-01-01 -3 ''",
        "3 7 NULL 1e-300 NULL NULL NULL NULL NULL",
        "4 7 NULL 0.1 NULL NULL 9999-12-31 NULL nan",
    ]
    trial.send("s", "9 0 0 0 0 true 2024-05-01 0 x")
    trial.send("s", "\n".join(rows))
    assert trial.answer().rejected == tuple(f"s: {row} (late: came after the watermark)" for row in rows)


def test_a_stream_that_must_not_be_late() -> None:
    trial = Trial(HOT.replace("'dead_letter'", "'fail'"), {"readings": "10 a 60"})
    with pytest.raises(LateRowError, match="its time is 1970-01-01 00:00:01"):
        trial.send("readings", "1 a 60")


def test_the_clock_leaves_idle_streams_behind() -> None:
    trial = Trial(TWO, {"a": "1 1"})
    trial.send("b", "2 2 \n 5 5")
    trial.answer().expect("")
    trial.advance("9 seconds")
    trial.answer().expect("")
    assert trial.held_back_by() == "a"
    trial.advance("1 s")
    trial.answer().expect("1 1 \n 2 2")
    trial.send("a", "4 4 \n 5 6")
    assert trial.answer().rejected == (
        "a: 4 4 (idle: came after the stream had been silent and time had gone on without it)",
    )
    trial.end("a")
    trial.advance("1 day")
    assert trial.held_back_by() == "b"
    trial.end("b")
    trial.answer().expect("1 1 \n 2 2 \n 5 5 \n 5 6")


def test_silent_streams_do_not_wait_for_each_other() -> None:
    three = TWO.replace("'memory');", "'memory', idle = '10 SECONDS');").replace(
        "ISTREAM(",
        "CREATE STREAM c (ts TIMESTAMP, x INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');\nISTREAM(",
    )
    trial = Trial(three.replace("FROM b [NOW]", "FROM b [NOW] UNION ALL SELECT x FROM c [NOW]"))
    trial.send("a", "10 1")
    trial.send("b", "20 2")
    trial.send("c", "30 3")
    trial.advance("6 seconds")
    trial.send("c", "74 4")
    trial.advance("4 seconds")
    assert trial.progress() == "74"
    trial.answer().expect("10 1 \n 20 2 \n 30 3")


def test_silence_lasts_over_a_restart() -> None:
    trial = Trial(TWO)
    trial.send("a", "1 1")
    trial.send("b", "1 1 \n 9 9")
    trial.advance("6 seconds")
    trial.restart()
    trial.advance("4 seconds")
    assert trial.progress() == "9"


def test_a_stream_that_speaks_is_not_idle() -> None:
    trial = Trial(TWO, {"a": "1 1", "b": "5 5"})
    trial.advance("6 seconds")
    trial.send("a", "2 2")
    trial.advance("6 seconds")
    trial.answer().expect("1 1")
    trial.advance("4 seconds")
    trial.answer().expect("1 1 \n 2 2")


def test_a_restart_goes_on_where_it_was() -> None:
    trial = Trial(READINGS + "SELECT SUM(celsius) AS s FROM readings [ROWS 2];")
    for line in ("0 a 1", "1 a 2", "9 a 3"):
        trial.send("readings", line)
        trial.restart()
    trial.end()
    trial.answer().expect("0 + 1 \n 1 - 1 \n 1 + 3 \n 9 - 3 \n 9 + 5")


def test_rows_can_be_stamped_by_the_clock() -> None:
    query = """
    CREATE STREAM s (a INTEGER) WITH (connector = 'memory', time = 'arrival');
    ISTREAM(SELECT a FROM s [NOW]);
    """
    trial = Trial(query, day="2024-05-01")
    trial.send("s", "10:00:00 1 \n 10:00:05 2")
    trial.send("s", "10:00:07 3")
    trial.end()
    trial.answer().expect("10:00:00 1 \n 10:00:05 2 \n 10:00:07 3")
    with pytest.raises(SourceError, match="arrives at 10:00:06, and it is 10:00:07 already"):
        Trial(query, {"s": "10:00:07 1 \n 10:00:06 1"})


def test_time_goes_on_with_the_clock_while_nothing_arrives() -> None:
    trial = Trial("""
    CREATE STREAM beats (host VARCHAR) WITH (connector = 'memory', time = 'arrival');
    DSTREAM(SELECT DISTINCT host FROM beats [RANGE 5 SECONDS]);
    """)
    trial.send("beats", "10:00:00 a \n 10:00:03 b")
    trial.advance("2 seconds")
    trial.answer().expect("")
    trial.advance("1 second")
    trial.answer().expect("10:00:05 a")
    trial.restart()
    trial.advance("1 hour")
    trial.answer().expect("10:00:05 a \n 10:00:08 b")


def test_a_heartbeat_takes_time_on_and_rows_too_far_ahead_of_the_clock_do_not() -> None:
    trial = Trial("""
    CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
    WITH (connector = 'memory', heartbeat = '1 SECOND', ahead = '1 DAY', late = 'dead_letter');
    DSTREAM(SELECT a FROM s [RANGE 5 SECONDS]);
    """)
    trial.send("s", "00:00:01 1")
    trial.advance("8 seconds")
    trial.answer().expect("")
    trial.advance("1 second")
    trial.answer().expect("00:00:06 1")
    trial.send("s", "00:00:06 2")
    trial.send("s", "1970-01-02T00:00:10 3")
    assert trial.progress() == "00:00:07"
    assert [reported.partition("(")[2] for reported in trial.answer().rejected] == [
        "late: came after the watermark)",
        "the timestamp is further ahead of the clock than is allowed)",
    ]


ROOMS = (
    READINGS
    + """
CREATE TABLE rooms (room VARCHAR, floor INTEGER) WITH (connector = 'files', path = 'rooms.csv');
CREATE TABLE open_rooms (ts TIMESTAMP, room VARCHAR, change VARCHAR, WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'open/', changes = 'change');
"""
)


def test_tables_that_never_change_come_first() -> None:
    query = ROOMS + "SELECT r.floor FROM readings [RANGE 5 SECONDS] AS m, rooms AS r WHERE m.room = r.room;"
    trial = Trial(query, {"readings": "1 hall 20", "rooms": "hall 3 \n lab 4"})
    trial.end()
    trial.answer().expect("1 + 3 \n 6 - 3")
    trial = Trial(query)
    with pytest.raises(SourceError, match="rows of the table 'rooms' are not given"):
        trial.send("readings", "1 hall 20")
    with pytest.raises(SourceError, match="rows of the table 'rooms' are not given"):
        trial.end()
    trial.send("rooms", "")
    with pytest.raises(SourceError, match="'rooms' are given already"):
        trial.send("rooms", "hall 3")


def test_tables_alone_are_answered_at_once() -> None:
    Trial(ROOMS + "SELECT room FROM rooms", {"rooms": "hall 1"}).answer().expect("0 + hall")


def test_tables_that_change() -> None:
    trial = Trial(ROOMS + "SELECT room FROM open_rooms", {"open_rooms": "1 + hall \n 2 + lab \n 3 - hall \n 4 - attic"})
    trial.end()
    trial.answer().expect("1 + hall \n 2 + lab \n 3 - hall")
    assert trial.answer().rejected == ("open_rooms: 4 - attic (a '-' without its row)",)
    with pytest.raises(SourceError, match="line 1, column 3: a change has a '\\+' or a '-'"):
        Trial(ROOMS + "SELECT room FROM open_rooms", {"open_rooms": "1 hall"})
    with pytest.raises(SourceError, match="a change has a '\\+' or a '-'"):
        Trial(ROOMS + "SELECT room FROM open_rooms", {"open_rooms": "1"})


def test_a_table_with_a_key_takes_the_newest_row() -> None:
    query = """
    CREATE TABLE prices (ts TIMESTAMP, item VARCHAR, price INTEGER, PRIMARY KEY (item), WATERMARK FOR ts AS ts)
    WITH (connector = 'memory');
    SELECT item, price FROM prices;
    """
    trial = Trial(query, {"prices": "1 tea 3 \n 4 tea 5"})
    trial.end()
    trial.answer().expect("1 + tea 3 \n 4 - tea 3 \n 4 + tea 5")


def test_several_queries_share_their_inputs() -> None:
    trial = Trial(
        READINGS
        + """
        CREATE SINK hot WITH (connector = 'memory');
        INSERT INTO hot SELECT room FROM readings [RANGE 1 SECOND] WHERE celsius > 50;
        SELECT COUNT(*) AS n FROM readings [RANGE 1 SECOND];
        """,
        {"readings": "5 hall 60"},
    )
    trial.end()
    trial.answer("hot").expect("5 + hall \n 6 - hall")
    trial.answer("query-2").expect("5 + 1 \n 6 - 1 \n 6 + 0")
    with pytest.raises(OptionError, match="there are 2 queries\n  ask for one of hot, query-2"):
        trial.answer()
    with pytest.raises(OptionError, match="no query writes to 'cold'"):
        trial.progress("cold")


def test_what_is_wrong_with_a_trial_is_reported(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="has no query"):
        Trial(READINGS)
    with pytest.raises(QueryError, match="line 4"):
        Trial(READINGS + "SELECT celsus FROM readings")
    with pytest.raises(SourceError, match=r"cannot read '.*missing\.cql': No such file"):
        Trial(tmp_path / "missing.cql")
    (tmp_path / "latin.cql").write_bytes(b"-- \xe9")
    with pytest.raises(SourceError, match="not UTF-8"):
        Trial(tmp_path / "latin.cql")
    with pytest.raises(OptionError, match="'tomorrow' is no day"):
        Trial(HOT, day="tomorrow")
    trial = Trial(HOT)
    with pytest.raises(OptionError, match="'soon' is no duration"):
        trial.advance("soon")
    with pytest.raises(SourceError, match="no stream or table 'reading'\n  there is readings"):
        trial.send("reading", "")
    trial.end("readings")
    with pytest.raises(SourceError, match="'readings' has ended"):
        trial.send("readings", "1 hall 20")
