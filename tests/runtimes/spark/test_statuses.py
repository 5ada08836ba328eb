from __future__ import annotations

from pathlib import Path

import pytest

from transom.core.errors import CheckpointError
from transom.cql.statements import parse_statements
from transom.pipeline.layout import Layout
from transom.plan.catalogue import Catalogue, QueryStatement
from transom.planner.plan import plan
from transom.runtimes.spark.statuses import Statuses

QUERY = (
    "CREATE STREAM s (ts TIMESTAMP, a INTEGER, WATERMARK FOR ts AS ts) WITH (connector = 'memory');"
    "SELECT a FROM s [RANGE 1 SECOND]"
)


def statuses() -> Statuses:
    catalogue = Catalogue()
    statement = parse_statements(QUERY, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return Statuses(Layout(plan(statement.query, catalogue), catalogue, "changes", 2), "q")


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"fragment": 1, "bucket": 0}]', "null", '{"a": 1}', "\udc80"])
def test_a_damaged_status_of_a_checkpoint_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "status.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CheckpointError, match=r"status\.json' is damaged") as error:
        statuses().recall(str(path))
    assert "delete this file alone" in str(error.value)


def test_what_was_kept_is_recalled_and_what_is_gone_is_no_loss(tmp_path: Path) -> None:
    found = statuses()
    found.recall(str(tmp_path / "status.json"))
    found.keep(str(tmp_path / "status.json"))
    found.recall(str(tmp_path / "status.json"))
    assert found.status().rows_out == 0
