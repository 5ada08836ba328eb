"""A user's program with every public call: a test runs it, and mypy lets no expression of it be Any."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import transom
from transom import (
    InputStatus,
    Latency,
    Leap,
    OperatorStatus,
    OverloadStatus,
    PartitionStatus,
    Progress,
    Query,
    Result,
    Session,
    SlideReport,
    SlideStatus,
    Span,
    Status,
    StreamingQuery,
)
from transom.testing import Answer, Trial, difference, run_query

NOON = datetime(2024, 5, 1, 12)


def rows() -> Iterator[dict[str, object]]:
    for i in range(20):
        yield {"ts": NOON + timedelta(seconds=i), "room": "hall" if i % 2 else "lab", "celsius": 18.5 + i}


def declare(session: Session) -> None:
    session.stream("readings", rows, time="ts", bound="2 seconds", late="dead_letter", idle=timedelta(seconds=5))
    session.stream("made", list(rows()), time="ts", heartbeat="1 second", ahead="1 day", replace=True)
    session.stream("counted", [{"at": 1, "n": 2}], time="at", time_unit="s", columns=None)
    session.table(
        "prices",
        [{"at": 1, "item": "a", "price": 2}],
        time="at",
        time_unit="s",
        key=["item"],
        bound=timedelta(0),
        late="drop",
        columns=None,
        replace=True,
    )
    session.table("floors", [{"room": "hall", "floor": 0}, {"room": "lab", "floor": 2}])
    session.execute("CREATE TABLE more (room VARCHAR) WITH (connector = 'memory')")
    session.append("more", [{"room": "attic"}])

    @session.function("VARCHAR", returns="VARCHAR", name="as_it_is", nulls="called", version="2", replace=True)
    def same(rooms: object) -> object:
        return rooms

    assert same(1) == 1


def of_input(status: InputStatus) -> list[object]:
    leap: Leap | None = status.leap
    leapt = [] if leap is None else [leap.before, leap.to, leap.late]
    return [
        status.name,
        status.rows_in,
        status.used,
        status.late,
        status.rejected,
        status.waiting,
        status.watermark,
        status.ended,
        *leapt,
    ]


def of_operator(status: OperatorStatus) -> list[object]:
    kept = [status.state_rows, status.state_bytes, status.seconds, status.slides, status.changes]
    return [status.number, status.operator, status.tactic, status.rows_in, status.rows_out, status.ends, *kept]


def of_partition(status: PartitionStatus) -> list[object]:
    return [status.stage, status.partition, status.rows_in, status.state_rows, status.state_bytes, status.seconds]


def of_slides(status: SlideStatus) -> list[object]:
    report: SlideReport = status.report
    counts = [report.complete, report.put_off, report.completed_later, report.delay_total, report.delay_most]
    sizes = [report.peak_bytes, report.bytes_written, report.bytes_read, report.recent, report.recent_tactics]
    together = [report.budget, report.sharing, report.held_bytes, report.peak_together]
    return [
        *counts,
        *sizes,
        *together,
        report.tactics,
        report.totals(),
        report.lines(),
        status.estimates,
        status.waiting,
        status.lines(),
    ]


def of_time(latency: Latency) -> list[float]:
    return [latency.count, latency.p50, latency.p99, latency.p999, latency.max]


def of_overload(status: OverloadStatus) -> list[object]:
    return [
        status.policy,
        status.method,
        status.on_overload,
        status.due,
        status.processed,
        status.shed,
        status.pending,
        status.partial,
    ]


def figures(status: Status) -> list[object]:
    """Of the parts that a query may have, those that it has."""
    values: list[object] = [status.name, status.progress, status.held_back_by, status.rows_out, status.steps]
    values += [of_input(each) for each in status.inputs] + [of_operator(each) for each in status.operators]
    values += [of_partition(each) for each in status.partitions]
    values += [] if status.slides is None else [of_slides(status.slides)]
    values += [] if status.latency is None else [of_time(status.latency)]
    values += [] if status.overload is None else [of_overload(status.overload)]
    return [*values, [each.reasons for each in status.inputs], status.finished]


def look(result: Result) -> list[str]:
    status = result.status
    assert status is not None
    floors = [str(row["floor"]) for row in result.to_pylist()]
    return [*map(str, figures(status)), *floors, str(len(result)), result.statement, str(result.text)]


def ask(session: Session) -> Query:
    text = "SELECT floor FROM readings [RANGE 5 SECONDS] JOIN floors USING (room) WHERE celsius > $limit"
    query = session.sql(text, emit="lifetimes", limit=20)
    print(query.statement, query.explain(), query.explain(analyze=True), query.explain().plans, query)
    print(look(query.collect()), query.to_pylist())
    print(look(session.run(text, emit="latest", limit=20.5)))
    several = "SELECT as_it_is(room) AS r FROM more; EXPLAIN SELECT room FROM more"
    for each in session.execute(several, emit="latest", checkpoint=None, end=True):
        print(each.statement, each.text)
    print(session.explain(text.replace("$limit", "20"), json=True, analyze=True, fixed={}), session.missing_settings)
    return query


def watch(query: StreamingQuery, seen: list[Progress]) -> None:
    query.on_progress(seen.append)
    assert query.await_progress(NOON + timedelta(seconds=1), timeout=60) and query.await_termination(timeout=60)
    last = query.last_progress
    assert last is not None and not query.is_active and query.exception() is None
    print(
        query.name,
        query.statement,
        query.status.progress,
        (last.query, last.rows_in, last.rows_per_second, last.seconds, last.progress),
        [each.batch for each in query.recent_progress],
    )
    kept = [
        f"#{operator.number} {operator.operator} {operator.tactic} {operator.state_rows} {operator.state_bytes}"
        for operator in last.operators
    ]
    print(kept, query.explain(), look(query.result), query.stop(timeout=60).finished, query)


def watch_from_outside(session: Session) -> None:
    console = session.console("127.0.0.1:0", allow_changes=False)
    metrics, answers = session.serve_metrics("127.0.0.1:0"), session.serve_sql("127.0.0.1:0")
    print(console.url, metrics.url, answers.url, session.kept_of("mine"), session.monitor.snapshots())
    for server in (console, metrics, answers):
        server.close()


def start_all(session: Session) -> list[str]:
    handed: list[object] = []
    started = session.start(
        "SELECT floor FROM floors",
        name="floors",
        emit="changes",
        on_rows=handed.append,
        on_batch=None,
        follow=False,
        checkpoint=None,
        end=True,
        clock=None,
        replace=True,
    )
    added = session.add(
        "SELECT floor FROM floors", name="again", emit="latest", on_rows=handed.append, follow=False, replace=True
    )
    assert added.await_termination(60)
    with session.together(checkpoint=None, follow=False):
        both = session.add("SELECT floor FROM floors", name="both", follow=None)
    assert started.await_termination(60) and both.await_termination(60) and handed
    return [each.name for each in session.queries]


def in_tests() -> None:
    text = """
        CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');
        SELECT MAX(a) AS m FROM s [RANGE 3 SECONDS]
    """
    answer: Answer = run_query(text, {"s": "1 5"}, of=None, day="1970-01-01", seed=1, restart=True)
    answer.expect("1 + 5 \n 4 - 5 \n 4 + NULL", digits=None)
    answer.expect_at("at 2: 5", digits=None)
    assert difference(answer, answer, digits=3) is None and answer.rejected == ()
    print(answer.columns, answer.instants, answer.at("2"), list(answer.snapshots()), answer.net, answer.stream)
    trial = Trial(text, {"s": "1 5"}, day="1970-01-01")
    trial.send("s", "2 6")
    trial.advance("1 second")
    trial.restart()
    print(trial.progress(), trial.held_back_by())
    trial.end()
    print(trial.answer())


def main() -> list[str]:
    seen: list[Progress] = []
    in_tests()
    with Session(batch_rows=5, tick=timedelta(seconds=1), sharing="on") as session:
        session.on_progress(seen.append)
        declare(session)
        query = ask(session)
        session.log_queries()
        watch_from_outside(session)
        print(session.runtime, session.preview("SELECT floor FROM floors", rows=1, emit="latest").to_pylist())
        with query.start(name="mine", replace=True) as running:
            watch(running, seen)
        names = start_all(session)
        try:
            session.run("SELECT nothing FROM readings")
        except transom.QueryError as error:
            span: Span | None = error.span
            assert span is not None
            names.append(f"{error.what} {error.remedy} {span.line} {span.column} {span.length}")
    return [*names, *(each.query for each in seen)]


if __name__ == "__main__":
    print("\n".join(main()))
