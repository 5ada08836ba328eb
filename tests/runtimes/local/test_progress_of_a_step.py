"""Progress is what is with the sink: whoever asks in the middle of a step is notified of what was before it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from transom import Session
from transom.program.query_specs import handing
from transom.program.run import QueryInRun
from transom.session import workspace_of

JOIN = "SELECT a.k FROM a [RANGE {0} SECONDS], b [RANGE {0} SECONDS] WHERE a.k = b.k"


@pytest.mark.parametrize("text", [f"ISTREAM({JOIN.format(5)})", ";".join(f"ISTREAM({JOIN.format(n)})" for n in (3, 5))])
def test_progress_does_not_run_ahead_of_what_is_written(text: str) -> None:
    session = Session(sharing="on", batch_rows=2)
    for name in "ab":
        rows: list[dict[str, Any]] = [{"t": f"2024-05-01 10:00:0{i}", "k": 1} for i in range(6)]
        session.stream(name, rows, time="t")
    seen: list[tuple[int, int]] = []
    queries: list[QueryInRun] = []

    def look(table: pa.Table) -> None:
        times = pc.cast(table.column("at"), "int64").to_pylist()
        seen.extend((min(times), query.status().progress) for query in queries)

    run = workspace_of(session).assemble(workspace_of(session).prepare(text), answer=handing(look))
    queries += run.queries
    run.run()
    assert len(seen) >= 3 and all(progress <= first for first, progress in seen)
    assert all(query.status().finished for query in queries)
