from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtimes.local.readings import (
    FORMATS,
    QUERY,
    at,
    declarations,
    heat,
    only_query,
    read_rows,
    sink,
    smoke,
    write_inputs,
    write_rows,
)
from tests.stepped import stepped
from transom.connectors.sink_folder import MARK
from transom.core.errors import CheckpointError, LateRowError, SourceError
from transom.core.time import BEGINNING, FOREVER, from_datetime
from transom.program.clock import HeldClock
from transom.runtimes.local.intake import POLL
from transom.runtimes.local.query import LocalQuery
from transom.session import Session, workspace_of

SECOND = 1_000_000


def answer(query: LocalQuery) -> list[dict[str, Any]]:
    query.run()
    found: list[dict[str, Any]] = query.table().to_pylist()
    return found


def in_memory(emit: Any = "changes") -> list[dict[str, Any]]:
    """The answer over the same rows, handed over as a whole."""
    session = Session()
    session.stream("heat", heat(), time="ts", bound="2 seconds")
    session.stream("smoke", smoke(), time="ts")
    session.table("rooms", [{"room": i, "name": f"room {i}"} for i in range(5)])
    found: list[dict[str, Any]] = session.run(QUERY, emit=emit).to_pylist()
    return found


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_of_every_format_give_the_answer_of_the_same_rows_in_memory(tmp_path: Path, file_format: str) -> None:
    write_inputs(tmp_path, file_format)
    found = answer(only_query(declarations(tmp_path, file_format) + QUERY))
    assert found == in_memory()
    assert len(found) > 20


BY_DAY = {("out.csv", "changes"), ("out.csv", "latest"), ("parts", "lifetimes")}
WRITTEN = product(("out.csv", "parts", "out.parquet", "out.jsonl"), ("changes", "lifetimes", "latest"))


@pytest.mark.parametrize(
    ("name", "emit"),
    [pytest.param(*way, marks=() if way in BY_DAY else pytest.mark.nightly) for way in WRITTEN],
)
def test_a_query_restarted_after_every_step_writes_what_an_unbroken_one_does(
    tmp_path: Path, name: str, emit: str
) -> None:
    write_inputs(tmp_path, "csv")
    lasting = QUERY.replace("RANGE 5 SECONDS", "ROWS 6")  # something is alive at the end
    text = declarations(tmp_path, "csv") + "{0} INSERT INTO out " + (lasting if emit == "latest" else QUERY)
    unbroken = only_query(text.format(sink(tmp_path / "unbroken", name, emit)))
    unbroken.run()
    broken_text = text.format(sink(tmp_path / "broken", name, emit))
    query = only_query(broken_text)
    while query.step():
        saved = query.snapshot()
        query = only_query(broken_text)
        query.restore(saved)
    query.close()
    rows = read_rows(tmp_path / "unbroken" / name)
    assert read_rows(tmp_path / "broken" / name) == rows
    assert len(rows) > (20 if emit != "latest" else 0)
    before, after = unbroken.status(), query.status()
    assert (after.inputs, after.steps, after.rows_out) == (before.inputs, before.steps, before.rows_out)


def test_a_query_that_goes_on_has_as_many_partitions_as_it_had(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    text = declarations(tmp_path, "csv") + "SET partitions = {0};" + QUERY
    one = only_query(text.format(1))
    one.run()
    query, turns = only_query(text.format(3)), 0
    while query.step():
        saved = query.snapshot()
        query = only_query(text.format(turns % 4 + 1))
        query.restore(saved)
        turns += 1
    query.close()
    assert len(query.pipeline.state.stages) == len(only_query(text.format(3)).pipeline.state.stages) > 3 and turns > 10
    of_one, of_three = (each.status() for each in (one, query))
    assert of_three.inputs == of_one.inputs and of_three.rows_out == of_one.rows_out > 20
    counted = [[(o.rows_in, o.rows_out, o.ends) for o in status.operators] for status in (of_one, of_three)]
    assert counted[0] == counted[1]


def test_the_input_that_is_furthest_behind_is_read_next(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    query = only_query(declarations(tmp_path, "csv") + QUERY)
    for _ in range(2):  # the table, three rows at a time
        assert query.step()
    assert [one.rows_in for one in query.status().inputs if one.name == "rooms"] == [5]
    held = []
    while not query.finished:
        status = query.status()
        before = {one.name: one.rows_in for one in status.inputs}
        open_marks = {one.name: one.watermark for one in status.inputs if one.watermark is not None and not one.ended}
        query.step()
        for read in [one.name for one in query.status().inputs if one.rows_in > before[one.name]]:
            assert open_marks[read] == min(open_marks.values())
            held.append(read)
    assert {"heat", "smoke"} == set(held)


def test_status_tells_where_it_stands(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    query = only_query(declarations(tmp_path, "csv") + QUERY)
    fresh = query.status()
    assert (fresh.progress, fresh.rows_out, fresh.steps, fresh.finished) == (BEGINNING, 0, 0, False)
    for _ in range(8):
        query.step()
    status = query.status()
    marks = {one.name: one.watermark for one in status.inputs if one.watermark is not None}
    assert status.progress == min(marks.values())
    assert status.held_back_by is not None and marks[status.held_back_by] == status.progress
    waiting = {one.name: one.waiting for one in status.inputs}
    assert sum(waiting.values()) > 0
    query.run()
    status = query.status()
    assert (status.progress, status.held_back_by, status.finished) == (FOREVER, None, True)
    assert status.rows_out == len(query.table())
    join = next(one for one in status.operators if "Join" in one.operator)
    assert join.rows_in > 0 and join.rows_out > 0 and join.seconds > 0
    scans = {one.number: one for one in status.operators if one.tactic == "scan"}
    assert sum(one.rows_out for one in scans.values()) == 65
    assert max(one.state_bytes for one in status.operators) > 0


def test_the_ledger_is_exact_with_rows_that_cannot_be_used(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    (tmp_path / "heat" / "2.csv").write_text(
        "ts,room,celsius\n"
        f"{at(20)},1,warm\n"  # no number
        f"{at(20)},2,cold\n"
        ",3,20.5\n"  # no time
        f"{at(20)},4\n"  # too few fields
        f"{at(21)},4,21.5\n"
        f"{at(3)},4,21.5\n"  # late
        f"{at(19.5)},4,21.5\n"  # in time, just
    )
    session = Session()
    query = stepped(session, declarations(tmp_path, "csv") + QUERY)
    query.run()
    ledger = {one.name: one for one in query.status().inputs}["heat"]
    assert (ledger.rows_in, ledger.used, ledger.late, ledger.rejected, ledger.waiting) == (24, 19, 1, 4, 0)
    assert ledger.reasons == {
        "column 'celsius' is DOUBLE and cannot hold the value": 2,
        "the time column 'ts' is NULL": 1,
        "the line has 2 fields where the header has 3": 1,
        "late: came after the watermark": 1,
    }
    dead_letters = session.dead_letters.to_pylist()
    assert [row["stream"] for row in dead_letters] == ["heat"] * 5
    assert dead_letters[0] == {
        "stream": "heat",
        "reason": "column 'celsius' is DOUBLE and cannot hold 'warm'",
        "position": "2.csv, line 2",
        "row": f"{at(20)},1,warm",
    }
    late = next(row for row in dead_letters if row["reason"].startswith("late"))
    assert late["position"] is None
    assert late["row"] == '{"ts": "2024-05-01 00:00:03", "room": 4, "celsius": 21.5}'


def test_late_rows_are_kept_only_where_they_are_wanted() -> None:
    rows = [{"ts": at(5), "a": 1}, {"ts": at(1), "a": 2}]
    for late, kept in (("drop", 0), ("dead_letter", 1)):
        session = Session()
        session.stream("s", rows, time="ts", late=late)  # type: ignore[arg-type]
        query = stepped(session, "SELECT a FROM s [RANGE 1 SECOND]")
        query.run()
        assert query.status().inputs[0].reasons == {"late: came after the watermark": 1}
        assert len(session.dead_letters) == kept
    session = Session()
    session.stream("s", rows, time="ts", late="fail")
    with pytest.raises(LateRowError):
        session.run("SELECT a FROM s [RANGE 1 SECOND]")


def test_changes_without_their_row_are_set_aside() -> None:
    session = Session()
    session.execute("""
        CREATE TABLE t (ts TIMESTAMP, op VARCHAR, a INTEGER, WATERMARK FOR ts AS ts)
        WITH (connector = 'memory', changes = 'op')
    """)
    session.append(
        "t", [{"ts": at(1), "op": "+", "a": 1}, {"ts": at(2), "op": "-", "a": 2}, {"ts": at(3), "op": "?", "a": 3}]
    )
    query = stepped(session, "SELECT a FROM t")
    query.run()
    (ledger,) = query.status().inputs
    assert (ledger.rows_in, ledger.used, ledger.rejected) == (3, 1, 2)
    assert ledger.reasons == {"the change is neither '+' nor '-'": 1, "a '-' without its row": 1}
    assert [row["row"] for row in session.dead_letters.to_pylist()] == [
        '{"ts": "2024-05-01 00:00:03", "op": "?", "a": 3}',
        '{"ts": "2024-05-01 00:00:02", "op": "-", "a": 2}',
    ]


def test_many_different_reasons_are_counted_together_in_the_end() -> None:
    from transom.pipeline.dead_letters import count_reasons

    counts: dict[str, int] = {}
    count_reasons(counts, [f"reason {i % 150}" for i in range(300)])
    assert sum(counts.values()) == 300
    assert counts["reason 99"] == 2 and counts["other reasons"] == 100
    count_reasons(counts, ["reason 0", "another"])
    assert counts["reason 0"] == 3 and counts["other reasons"] == 101


# --- following -------------------------------------------------------------------------------------------------------


def follow(session: Session, text: str, clock: HeldClock) -> LocalQuery:
    (query,) = workspace_of(session).assemble(workspace_of(session).prepare(text), follow=True, clock=clock).queries
    assert isinstance(query, LocalQuery)
    return query


def commit(query: LocalQuery) -> list[Any]:
    """Steps until there is nothing to do for now."""
    while query.step():
        pass
    return [row["a"] for row in query.table().to_pylist()]


TWO_STREAMS = """
    CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory', idle = '30 SECONDS');
    CREATE STREAM t (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts)
        WITH (connector = 'memory', idle = '10 SECONDS', late = 'dead_letter');
    ISTREAM(SELECT a FROM s [RANGE 1 SECOND] UNION ALL SELECT a FROM t [RANGE 1 SECOND])
"""


def test_a_followed_query_waits_for_more_and_never_ends() -> None:
    session, clock = Session(), HeldClock()
    query = follow(session, TWO_STREAMS, clock)
    session.append("s", [{"ts": at(1), "a": 1}, {"ts": at(5), "a": 5}])
    assert commit(query) == []
    session.append("t", [{"ts": at(2), "a": 2}])
    assert commit(query) == []  # it has been looked at just now
    clock.sleep(POLL)
    assert commit(query) == [1]  # 5 waits for t, and 2 for what else may happen at 2
    assert not query.finished
    assert query.status().held_back_by == "t"


def test_a_silent_stream_is_left_behind_and_its_older_rows_are_late() -> None:
    session, clock = Session(), HeldClock()
    query = follow(session, TWO_STREAMS, clock)
    session.append("s", [{"ts": at(1), "a": 1}, {"ts": at(5), "a": 5}])
    assert commit(query) == []
    clock.sleep(10 * SECOND - 1)
    assert commit(query) == []
    clock.sleep(SECOND)
    assert commit(query) == [1]
    marks = {one.name: one.watermark for one in query.status().inputs}
    assert marks["t"] == from_datetime(at(5))
    session.append("s", [{"ts": at(9), "a": 9}])
    clock.sleep(POLL)
    assert commit(query) == [1, 5]  # t is still silent
    session.append("t", [{"ts": at(4), "a": 4}, {"ts": at(9), "a": 90}])
    clock.sleep(POLL)
    assert commit(query) == [1, 5]  # t speaks, and 9 waits for what else happens at 9
    session.append("s", [{"ts": at(10), "a": 10}])
    session.append("t", [{"ts": at(10), "a": 100}])
    clock.sleep(POLL)
    assert sorted(commit(query)) == [1, 5, 9, 90]
    assert [row["reason"] for row in session.dead_letters.to_pylist()] == [
        "idle: came after the stream had been silent and time had gone on without it"
    ]


def test_a_restart_repeats_that_a_stream_was_left_behind() -> None:
    session, clock = Session(), HeldClock()
    query = follow(session, TWO_STREAMS, clock)
    session.append("s", [{"ts": at(1), "a": 1}, {"ts": at(5), "a": 5}])
    commit(query)
    clock.sleep(10 * SECOND)
    assert commit(query) == [1]
    saved = query.snapshot()
    again = follow(session, TWO_STREAMS.rpartition(";")[2], clock)
    again.restore(saved)
    session.append("t", [{"ts": at(4), "a": 4}])
    commit(again)
    assert {one.name: one.late for one in again.status().inputs} == {"s": 0, "t": 1}


def test_growing_files_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(f"ts,a\n{at(1)},1\n{at(2)},2\n{at(3)}")
    text = f"""
        CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'files', path = '{path}');
        ISTREAM(SELECT a FROM s)
    """
    clock = HeldClock()
    query = only_query(text, follow=True, clock=clock)
    assert commit(query) == [1]
    with path.open("a") as file:
        file.write(f",3\n{at(4)},4\n")
    clock.sleep(POLL)
    assert commit(query) == [1, 2, 3]


def test_rows_without_a_time_are_stamped_by_the_clock() -> None:
    session, clock = Session(tick="1 second"), HeldClock(from_datetime(at(100)))
    session.stream("s", [{"a": 1}, {"a": 2}])
    (query,) = (
        workspace_of(session)
        .assemble(workspace_of(session).prepare("ISTREAM(SELECT a FROM s [RANGE 1 SECOND])"), clock=clock)
        .queries
    )
    assert isinstance(query, LocalQuery)
    assert [(row["at"], row["a"]) for row in answer(query)] == [(at(100), 1), (at(101), 2)]


# --- ends ------------------------------------------------------------------------------------------------------------


def test_tables_alone_and_empty_inputs_come_to_an_end(tmp_path: Path) -> None:
    session = Session()
    session.table("t", [{"a": 1}, {"a": 2}])
    session.table("none", pa.table({"a": pa.array([], pa.int32())}))
    session.stream(
        "empty", pa.table({"ts": pa.array([], pa.timestamp("us")), "a": pa.array([], pa.int32())}), time="ts"
    )
    assert session.run("SELECT SUM(a) AS s FROM t", emit="latest").to_pylist() == [{"s": 3}]
    for text in ("SELECT a FROM none", "SELECT a FROM empty [ROWS 2]", "SELECT t.a FROM t, empty WHERE t.a = empty.a"):
        query = stepped(session, text)
        assert answer(query) == []
        assert query.finished


def test_a_missing_file_is_an_error_and_leaves_no_rows_behind(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    (tmp_path / "smoke.csv").unlink()
    query = only_query(declarations(tmp_path, "csv") + sink(tmp_path, "out") + "INSERT INTO out " + QUERY)
    with pytest.raises(SourceError, match=r"smoke\.csv"):
        query.run()
    assert [path.name for path in (tmp_path / "out").iterdir()] == [MARK]


def test_a_snapshot_of_another_query_is_rejected(tmp_path: Path) -> None:
    write_inputs(tmp_path, "csv")
    query = only_query(declarations(tmp_path, "csv") + QUERY)
    query.step()
    saved = query.snapshot()
    for other in ("SELECT a FROM s", QUERY.replace("ROWS 4", "ROWS 5")):
        text = declarations(tmp_path, "csv") + "CREATE TABLE s (a INTEGER) WITH (connector = 'memory');" + other
        with pytest.raises(CheckpointError, match="another query"):
            only_query(text).restore(saved)
    with pytest.raises(CheckpointError):
        only_query(declarations(tmp_path, "csv") + QUERY).restore(saved[: len(saved) // 2])


def test_rows_may_be_as_many_a_step_as_the_option_says(tmp_path: Path) -> None:
    write_rows(tmp_path / "s.csv", heat(20))
    text = f"""
        CREATE STREAM s (ts TIMESTAMP, room INTEGER, WATERMARK FOR ts AS ts)
            WITH (connector = 'files', path = '{tmp_path}/s.csv');
        SET batch_rows = 6;
        SELECT COUNT(*) AS n FROM s
    """
    query = only_query(text)
    seen = []
    while query.step():
        seen.append(query.status().inputs[0].rows_in)
    assert seen[:3] == [6, 12, 18] and seen[-1] == 20
