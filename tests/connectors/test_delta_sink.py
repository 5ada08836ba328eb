"""Answers in Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tests.connectors.kafka_topics import until
from tests.profile import NIGHTLY
from transom.connectors import Opening, Resume, SinkDeclaration
from transom.connectors.delta_sink import DeltaSink
from transom.connectors.open import check_sink
from transom.core.errors import OptionError, SinkError, TransomError
from transom.plan.catalogue import SinkDefinition
from transom.testing.connector import SinkPlace, SinkTests

NET = pa.schema([pa.field("change", pa.string(), nullable=False), ("k b", pa.string()), ("v", pa.int32())])


def rows_of(path: Path | str, options: dict[str, str] | None = None) -> list[tuple[Any, ...]]:
    try:
        table = DeltaTable(str(path), storage_options=options)
    except TableNotFoundError:
        return []
    return [tuple(row.values()) for row in pa.table(table.to_pyarrow_table()).to_pylist()]


class TestKit(SinkTests):
    forms = SinkTests.forms if NIGHTLY else ("net",)

    @pytest.fixture
    def place(self, tmp_path: Path) -> SinkPlace:
        path = tmp_path / "answers"
        return SinkPlace({"connector": "delta", "path": str(path)}, lambda: rows_of(path))


@pytest.mark.nightly
class TestBucket(SinkTests):
    forms = ("stream", "net")

    @pytest.fixture
    def place(self, bucket: str) -> SinkPlace:
        uri, options = f"{bucket}/answers", {"AWS_ALLOW_HTTP": "true"}
        return SinkPlace({"connector": "delta", "path": f"{uri}/"}, lambda: rows_of(uri, options))


def opened(
    path: Path | str, run: str = "run/o", form: str = "net", key: tuple[str, ...] | None = ("k b",)
) -> DeltaSink:
    declared = SinkDeclaration("o", {"connector": "delta", "path": str(path)}, run=run)
    schema = NET if form == "net" else pa.schema([*NET][1:])
    return DeltaSink(declared, Opening(schema, replayed=True, form=form, key=key))


def test_a_run_that_begins_replaces_what_another_maintained(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "t", "one/o"), opened(tmp_path / "t", "two/o")
    first.transact(0, [pa.record_batch([["+", "+"], ["a", None], pa.array([1, 2], pa.int32())], schema=NET)])
    second.transact(0, [pa.record_batch([["+"], ["b"], pa.array([3], pa.int32())], schema=NET)])
    second.transact(1, [pa.record_batch([["-", "+"], ["b", "a"], pa.array([3, 4], pa.int32())], schema=NET)])
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


def test_a_bucket_has_one_commit_of_an_epoch(bucket: str) -> None:
    """Of two that write the same epoch at once, too: the storage puts the second only where nothing is."""
    row = pa.record_batch([["a"], pa.array([1], pa.int32())], schema=pa.schema([*NET][1:]))
    for epoch in (0, 0, 1):
        opened(f"{bucket}/t", form="stream").transact(epoch, [row])
    assert rows_of(f"{bucket}/t", {"AWS_ALLOW_HTTP": "true"}) == [("a", 1)] * 2


def held(
    path: Path, staging: Path, resume: Resume | None = None, seconds: str = "1 HOUR", form: str = "net"
) -> DeltaSink:
    properties = {"connector": "delta", "path": str(path), "commit_interval": seconds}
    declared = SinkDeclaration("o", properties, run="run/o", staging=str(staging))
    schema = NET if form == "net" else pa.schema([*NET][1:])
    return DeltaSink(declared, Opening(schema, resume, replayed=True, form=form, key=("k b",)))


def written(sink: DeltaSink, epoch: int, *rows: tuple[str, str | None, int]) -> None:
    signs, keys, values = zip(*rows, strict=True)
    columns = [pa.array(signs), pa.array(keys), pa.array(values, pa.int32())]
    sink.write(pa.record_batch(columns[3 - len(sink.schema) :], schema=sink.schema))
    sink.commit(epoch, sink.prepare(epoch))


@pytest.mark.parametrize("form", ["net", "stream"])
def test_epochs_are_one_commit_and_none_is_lost(tmp_path: Path, form: str) -> None:
    table, staging = tmp_path / "t", tmp_path / "staged"
    first = held(table, staging, form=form)
    written(first, 0, ("+", "a", 1), ("+", None, 2), ("+", "c", 3))
    written(first, 1, ("+", "a", 4), ("-", None, 2))
    sink = held(table, staging, Resume(1, 2), form=form)  # it has died: the first epoch counts, the second comes again
    assert not rows_of(table)
    written(sink, 1, ("+", "a", 4), ("-", None, 2))
    sink.close()
    answers: dict[str, list[tuple[Any, ...]]] = {
        "net": [("a", 4), ("c", 3)],
        "stream": [("a", 1), (None, 2), ("c", 3), ("a", 4), (None, 2)],
    }
    answer = answers[form]
    assert sorted(rows_of(table), key=repr) == sorted(answer, key=repr)
    assert DeltaTable(str(table)).version() == 1, "one commit behind the one that made it"
    written(first, 2, ("+", "x", 9))  # staged, and counted, and then it dies
    written(first, 3, ("+", "y", 9))
    first.abort(4)
    again = held(table, staging, Resume(3, 3), form=form)
    written(again, 3, ("+", "a", 5))
    again.close()
    assert not list(staging.iterdir())
    answers = {"net": [("a", 5), ("c", 3), ("x", 9)], "stream": [*answer, ("x", 9), ("a", 5)]}
    more = answers[form]
    assert sorted(rows_of(table), key=repr) == sorted(more, key=repr)


def test_what_was_committed_and_not_yet_removed_is_not_committed_again(tmp_path: Path) -> None:
    table, staging = tmp_path / "t", tmp_path / "staged"
    sink = held(table, staging, form="stream")
    written(sink, 0, ("+", "a", 1))
    kept = next(staging.iterdir()).read_bytes()
    sink.close()
    (staging / "epoch-00000000.arrow").write_bytes(kept)
    again = held(table, staging, Resume(1, 1), form="stream")
    written(again, 1, ("+", "b", 2))
    again.close()
    assert sorted(rows_of(table)) == [("a", 1), ("b", 2)]


def test_an_interval_is_over_by_itself(tmp_path: Path) -> None:
    sink = held(tmp_path / "t", tmp_path / "staged", seconds="50 MILLISECONDS")
    written(sink, 0, ("+", "a", 1))
    until(lambda: rows_of(tmp_path / "t") == [("a", 1)])
    sink.close()


def test_intervals_are_rejected(tmp_path: Path) -> None:
    schema = pa.schema([("wait", pa.duration("us"))])
    declared = SinkDeclaration("o", {"connector": "delta", "path": str(tmp_path / "t")}, run="run/o")
    with pytest.raises(OptionError, match="no INTERVAL, and 'wait' is one") as error:
        DeltaSink(declared, Opening(schema, form="stream"))
    assert "epoch(wait)" in (error.value.remedy or "")


def test_an_answer_without_a_key_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="name a row") as error:
        opened(tmp_path / "t", key=None)
    assert error.value.remedy


@pytest.mark.parametrize("properties", [{}, {"path": "t", "table": "t"}, {"path": "t", "commit_interval": "often"}])
def test_a_wrong_declaration_is_rejected(properties: dict[str, str]) -> None:
    with pytest.raises(TransomError) as error:
        check_sink(SinkDefinition("o", properties={"connector": "delta", **properties}))
    assert error.value.remedy
