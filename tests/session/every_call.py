"""A user's program with every public call: a test runs it, and mypy lets no expression of it be Any."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import transom
from transom import Progress, Query, Result, Session, StreamingQuery

NOON = datetime(2024, 5, 1, 12)


def rows() -> Iterator[dict[str, object]]:
    for i in range(20):
        yield {"ts": NOON + timedelta(seconds=i), "room": "hall" if i % 2 else "lab", "celsius": 18.5 + i}


def declare(session: Session) -> None:
    session.stream("readings", rows, time="ts", bound="2 seconds", late="dead_letter", idle=timedelta(seconds=5))
    session.stream("made", list(rows()), time="ts", heartbeat="1 second", ahead="1 day", replace=True)
    session.table("floors", [{"room": "hall", "floor": 0}, {"room": "lab", "floor": 2}])
    session.execute("CREATE TABLE more (room VARCHAR) WITH (connector = 'memory')")
    session.append("more", [{"room": "attic"}])

    @session.function("VARCHAR", returns="VARCHAR", name="as_it_is", nulls="called", version="2", replace=True)
    def same(rooms: object) -> object:
        return rooms

    assert same(1) == 1


def look(result: Result) -> list[str]:
    status = result.status
    assert status is not None
    inputs = [f"{one.name}: {one.used} of {one.rows_in}" for one in status.inputs]
    operators = [f"#{one.number} {one.tactic}: {one.state_bytes}" for one in status.operators]
    found = [str(row["floor"]) for row in result.to_pylist()]
    return [*inputs, *operators, *found, str(len(result)), result.statement, str(result.text)]


def ask(session: Session) -> Query:
    text = "SELECT floor FROM readings [RANGE 5 SECONDS] JOIN floors USING (room) WHERE celsius > $limit"
    query = session.sql(text, emit="lifetimes", limit=20)
    print(query.statement, query.explain(), query.explain(analyze=True), query)
    print(look(query.collect()), query.to_pylist())
    print(look(session.run(text, emit="latest", limit=20.5)))
    for each in session.execute("SELECT as_it_is(room) AS r FROM more; EXPLAIN SELECT room FROM more", emit="latest"):
        print(each.statement, each.text)
    print(session.explain(text.replace("$limit", "20"), json=True), session.missing_settings)
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
        last.rows_per_second,
        [each.batch for each in query.recent_progress],
    )
    kept = [f"#{one.number} {one.state_rows}" for one in last.operators]
    print(kept, query.explain(), look(query.result), query.stop(timeout=60).finished, query)


def main() -> list[str]:
    seen: list[Progress] = []
    with Session(batch_rows=5, tick=timedelta(seconds=1), sharing="on") as session:
        session.on_progress(seen.append)
        declare(session)
        query = ask(session)
        session.log_queries()
        print(session.runtime, session.console("127.0.0.1:0").url, session.serve_metrics("127.0.0.1:0").url)
        print(session.preview("SELECT floor FROM floors", rows=1).to_pylist(), session.monitor is session.monitor)
        print(session.serve_sql("127.0.0.1:0").url, session.kept_of("mine"))
        with query.start(name="mine", replace=True) as running:
            watch(running, seen)
        started = session.start("SELECT floor FROM floors", name="floors", emit="changes", follow=False, replace=True)
        added = session.add("SELECT floor FROM floors", name="again", emit="latest", replace=True)
        assert started.await_termination(60) and added.await_termination(60)
        names = [each.name for each in session.queries]
        try:
            session.run("SELECT nothing FROM readings")
        except transom.QueryError as error:
            span = error.span
            assert span is not None
            names.append(f"{error.what} {error.remedy} {span.line}")
    return [*names, *(each.query for each in seen)]


if __name__ == "__main__":
    print("\n".join(main()))
