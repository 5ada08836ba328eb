"""Answers in Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.profile import NIGHTLY
from transom.connectors import Opening, SinkDeclaration
from transom.connectors.delta_sink import DeltaSink
from transom.connectors.open import check_sink
from transom.core.errors import OptionError, SinkError, TransomError
from transom.plan.catalogue import SinkDefinition
from transom.testing.connector import SinkPlace, SinkTests

NET = pa.schema([pa.field("change", pa.string(), nullable=False), ("k b", pa.string()), ("v", pa.int32())])


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    if not DeltaTable.is_deltatable(str(path)):
        return []
    return [tuple(row.values()) for row in pa.table(DeltaTable(str(path)).to_pyarrow_table()).to_pylist()]


class TestKit(SinkTests):
    forms = SinkTests.forms if NIGHTLY else ("net",)

    @pytest.fixture
    def place(self, tmp_path: Path) -> SinkPlace:
        path = tmp_path / "answers"
        return SinkPlace({"connector": "delta", "path": str(path)}, lambda: rows_of(path))


def opened(path: Path, run: str = "run/o", form: str = "net", key: tuple[str, ...] | None = ("k b",)) -> DeltaSink:
    declared = SinkDeclaration("o", {"connector": "delta", "path": str(path)}, run=run)
    schema = NET if form == "net" else pa.schema([*NET][1:])
    return DeltaSink(declared, Opening(schema, replayed=True, form=form, key=key))


def test_a_run_that_begins_replaces_what_another_maintained(tmp_path: Path) -> None:
    one, two = opened(tmp_path / "t", "one/o"), opened(tmp_path / "t", "two/o")
    one.transact(0, [pa.record_batch([["+", "+"], ["a", None], pa.array([1, 2], pa.int32())], schema=NET)])
    two.transact(0, [pa.record_batch([["+"], ["b"], pa.array([3], pa.int32())], schema=NET)])
    two.transact(1, [pa.record_batch([["-", "+"], ["b", "a"], pa.array([3, 4], pa.int32())], schema=NET)])
    assert rows_of(tmp_path / "t") == [("a", 4)]
    with pytest.raises(SinkError, match="one that a query maintains"):
        opened(tmp_path / "t", form="stream").transact(
            0, [pa.record_batch([["b"], pa.array([3], pa.int32())], schema=pa.schema([*NET][1:]))]
        )


def test_a_repeated_epoch_appends_nothing(tmp_path: Path) -> None:
    row = pa.record_batch([["a"], pa.array([1], pa.int32())], schema=pa.schema([*NET][1:]))
    for epoch in (0, 0, 1):
        opened(tmp_path / "t", form="stream").transact(epoch, [row])
    assert rows_of(tmp_path / "t") == [("a", 1)] * 2


def test_an_answer_without_a_key_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="name a row") as error:
        opened(tmp_path / "t", key=None)
    assert error.value.remedy


@pytest.mark.parametrize("properties", [{}, {"path": "t", "table": "t"}])
def test_a_wrong_declaration_is_rejected(properties: dict[str, str]) -> None:
    with pytest.raises(TransomError) as error:
        check_sink(SinkDefinition("o", properties={"connector": "delta", **properties}))
    assert error.value.remedy
