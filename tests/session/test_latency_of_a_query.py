"""Rows of streams that are stamped on arrival are stepped as they come, and the time that takes is measured."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from transom import Session
from transom.cli.summary import summary
from transom.program.latency import Latency
from transom.program.status import Status


def status_of(session: Session, text: str, **options: Any) -> Status:
    with session.start(text, **options) as query:
        query.await_termination(timeout=60)
    return query.status


def ordered(latency: Latency | None) -> Latency:
    assert latency is not None
    assert 0 < latency.p50 <= latency.p99 <= latency.p999 <= latency.max
    return latency


@pytest.mark.parametrize("emit", ["changes", "latest"])
def test_every_row_is_measured(emit: str) -> None:
    session = Session(batch_rows=7)
    session.stream("s", [{"k": i % 5, "a": i} for i in range(50)])
    session.stream("t", [{"k": i % 5} for i in range(20)])
    session.table("names", [{"k": k, "label": str(k)} for k in range(5)])
    seen: list[pa.Table] = []
    text = "SELECT a, label FROM s [ROWS 2], t [RANGE 1 HOUR], names WHERE s.k = t.k AND t.k = names.k"
    status = status_of(session, text, emit=emit, on_rows=seen.append)
    assert seen
    latency = ordered(status.latency)
    assert latency.count == 70, "the rows of a table do not arrive"
    assert summary([status]).splitlines()[-1] == f"  {latency}"
    assert str(latency) in status._repr_html_()


def test_rows_are_out_before_the_next_batch_is_asked_for() -> None:
    seen: list[int] = []
    pending: list[int] = []

    def rows() -> Any:
        for i in range(5):
            pending.append(i - len(seen))
            yield pa.record_batch({"a": [i]})

    session = Session()
    session.stream("s", rows())
    status = status_of(session, "ISTREAM(SELECT a FROM s)", on_rows=lambda table: seen.extend(table["a"].to_pylist()))
    assert seen == [0, 1, 2, 3, 4]
    assert pending == [0] * 5
    assert ordered(status.latency).count == 5


def test_results_tell_it() -> None:
    session = Session()
    session.stream("s", [{"a": 1}, {"a": 2}])
    (result,) = session.execute("SELECT SUM(a) AS n FROM s")
    assert result.status is not None
    assert ordered(result.status.latency).count == 2


def test_streams_with_times_of_their_own_are_not_measured() -> None:
    session = Session()
    session.stream("s", [{"ts": "2024-05-01", "a": 1}], time="ts")
    (result,) = session.execute("SELECT a FROM s")
    assert result.status is not None and result.status.latency is None
    assert "latency" not in summary([result.status])
