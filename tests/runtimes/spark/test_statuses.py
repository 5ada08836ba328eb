from __future__ import annotations

import json
from pathlib import Path

import pytest

from transom.core.errors import CheckpointError
from transom.cql.statements import parse_statements
from transom.pipeline.frames import Frame
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan
from transom.program.batch_size import FIRST_ROWS, BatchSize
from transom.runtimes.spark.feedback import Feedback
from transom.runtimes.spark.statuses import Statuses

QUERY = (
    "CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"
    "SELECT a FROM s [RANGE 1 SECOND]"
)


def statuses(size: BatchSize | None = None) -> Statuses:
    catalogue = Catalogue()
    statement = parse_statements(QUERY, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return Statuses(Layout(plan(statement.query, catalogue), catalogue, "changes", 2), "q", size)


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"fragment": 1, "partition": 0}]', "null", '{"a": 1}', "\udc80"])
def test_a_damaged_status_of_a_checkpoint_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "status.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CheckpointError, match=r"status\.json' is damaged") as error:
        statuses().recover(str(path))
    assert "delete this file alone" in str(error.value)


def test_what_was_kept_is_recalled_and_what_is_gone_is_no_loss(tmp_path: Path) -> None:
    found = statuses()
    found.recover(str(tmp_path / "status.json"))
    found.keep(str(tmp_path / "status.json"))
    found.recover(str(tmp_path / "status.json"))
    assert found.status().rows_out == 0


def reported(rows: int) -> Frame:
    """What the first partition says when so many rows have been read since the query began."""
    nothing: dict[str, object] = {"inputs": {}, "leaps": {}, "reasons": {}, "operators": {}, "queries": {}}
    seen = {"seen": {"s": [rows, 0, 0, 0, 0]}, "watermarks": {"s": 5}, "progress": 5, "frontier": 5, "rows_out": 0}
    return Frame({"kind": "status", "status": json.dumps({"fragment": 1, "partition": 0, **seen, **nothing})})


def test_a_query_that_goes_on_takes_batches_as_large_as_were_right_before() -> None:
    found = statuses(BatchSize(0.5))
    found.resume(Feedback(rows=9_000))
    assert found.feedback.rows == 9_000
    found.take([reported(9_000)], seconds=0.5)
    found.take([reported(18_000)], seconds=0.5)
    assert found.feedback.rows == 9_000


def test_rows_that_were_read_before_a_query_went_on_from_another_are_not_of_its_first_batch() -> None:
    found = statuses(BatchSize(0.5))
    found.take([reported(1_000_000_000)], seconds=0.5)
    assert found.feedback.rows == 4 * FIRST_ROWS
