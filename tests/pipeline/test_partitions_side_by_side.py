"""Partitions that are written side by side: each has a watermark of its own, and the least of them counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.connectors.ledger import PARTITIONS, answers
from transom.core.schema import BIGINT, TIMESTAMP, VARCHAR, Schema
from transom.core.time import BEGINNING, FOREVER
from transom.pipeline.admission import InputGate, InputState
from transom.pipeline.input_gates import InputGates
from transom.plan.catalogue import StreamDefinition, TimeColumn
from transom.session import Session
from transom.state import codec

COLUMNS = Schema.of(("ts", TIMESTAMP), ("p", VARCHAR), ("n", BIGINT))

TEXT = """
CREATE STREAM s (ts TIMESTAMP, v INTEGER, WATERMARK FOR ts AS ts)
    WITH (connector = 'ledger', folder = '{folder}', side_by = 'side'{more});
CREATE SINK o WITH (connector = 'ledger', database = '{folder}/answers.db');
INSERT INTO o ISTREAM(SELECT v FROM s)
"""


def write(folder: Path, partition: str, *values: int) -> None:
    with open(folder / partition, "a") as log:
        log.writelines(f"2024-05-01 00:00:{value:02},{value}\n" for value in values)


def gates(bound: int = 0, idle: int | None = None) -> InputGates:
    definition = StreamDefinition("s", COLUMNS, TimeColumn("ts", bound), idle=idle)
    return InputGates({"s": InputGate(definition, 1)}, 1, 0)


def push(of: InputGates, partition: str, *times: int) -> list[str]:
    """Rows of a partition; why those are rejected that are."""
    gate, state = of.inputs["s"], of.state.inputs["s"]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(times, TIMESTAMP), pa.array([partition] * len(times)), pa.array(range(len(times)), BIGINT)],
        schema=COLUMNS.arrow(),
    )
    found = gate.admit(state, gate.classify(batch, state.mark(partition).greatest), partition)
    return [] if found is None else [reason.partition(":")[0] for reason in found.reasons]


def test_no_row_is_late_because_another_partition_is_ahead() -> None:
    of = gates()
    of.enter("s", ["0", "1"])
    assert push(of, "0", 10, 20, 30) == [] and of.watermark("s") == BEGINNING
    assert push(of, "1", 5, 12) == [] and of.watermark("s") == 12
    assert push(of, "0", 29) == ["late"] and push(of, "1", 11) == ["late"], "each against its own"
    assert of.release("s", 12).t.tolist() == [5, 10]


def test_a_partition_that_comes_later_does_not_take_time_back() -> None:
    of = gates()
    of.enter("s", ["0"])
    push(of, "0", 50)
    of.enter("s", ["0", "1"])
    assert of.watermark("s") == 50 and push(of, "1", 49, 51) == ["idle"]
    push(of, "0", 70)
    assert of.watermark("s") == 51, "and holds the others back from then on"


def test_an_idle_partition_holds_nobody_back() -> None:
    of = gates(idle=100)
    of.enter("s", ["0", "1"])
    push(of, "0", 50)
    for partition, came in (("0", True), ("1", False)):
        of.hear_partition("s", partition, 1000, came, 1000 if partition == "1" else None)
    assert not of.leave_idle_behind() and of.watermark("s") == BEGINNING
    assert of.wake(30) == 1100, "then it is idle"
    push(of, "0", 60)
    of.hear_partition("s", "0", 1100, True, None)
    of.hear_partition("s", "1", 1100, False, 1100)
    assert of.leave_idle_behind() and of.watermark("s") == 60
    assert push(of, "1", 40, 65) == ["idle"]
    of.hear_partition("s", "1", 1101, True, 1101)
    push(of, "0", 90)
    of.hear_partition("s", "0", 1102, True, None)
    assert not of.leave_idle_behind() and of.watermark("s") == 65, "it is back"
    for partition in ("0", "1"):
        of.hear_partition("s", partition, 2000, False, 2000)
    of.hear("s", 2000, False, 2000)
    assert of.leave_idle_behind() and of.watermark("s") == 90, "if all are idle, the last one counts"


def test_rows_of_an_instant_come_in_the_order_of_partitions() -> None:
    orders = []
    for first in ("2", "10"):
        of = gates()
        of.enter("s", ["2", "10"])
        for partition in (first, "2" if first == "10" else "10"):
            push(of, partition, 5, 5, 7)
        rows = of.release("s", FOREVER).values
        orders.append(list(zip(rows.column("p").to_pylist(), rows.column("n").to_pylist(), strict=True)))
    assert orders[0] == orders[1] == [("2", 0), ("2", 1), ("10", 0), ("10", 1), ("2", 2), ("10", 2)]


def test_partitions_are_in_a_checkpoint() -> None:
    of = gates(bound=3)
    of.enter("s", ["0", "1"])
    push(of, "0", 10)
    state = codec.decode(codec.encode(of.state.inputs["s"]), STATE)
    assert state == of.state.inputs["s"] or state.partitions == of.state.inputs["s"].partitions


def _state_classes() -> tuple[type, ...]:
    from transom.pipeline.registry import STATE_CLASSES, with_parts

    return tuple({*STATE_CLASSES, *with_parts([InputState])})


STATE = _state_classes()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), max_size=40),
    st.integers(0, 6),
    st.randoms(use_true_random=False),
)
def test_what_is_admitted_depends_neither_on_batches_nor_on_speeds(
    rows: list[tuple[str, int]], bound: int, random: object
) -> None:
    partitions = {name: [t for of, t in rows if of == name] for name in "abc"}
    expected = {name: _admitted(times, bound) for name, times in partitions.items()}
    of = gates(bound=bound)
    of.enter("s", list(partitions))
    left = {name: list(times) for name, times in partitions.items()}
    progress, taken = BEGINNING, []
    while any(left.values()):
        name = random.choice([name for name, times in left.items() if times])  # type: ignore[attr-defined]
        count = random.randint(1, len(left[name]))  # type: ignore[attr-defined]
        push(of, name, *left[name][:count])
        del left[name][:count]
        assert of.watermark("s") >= progress
        progress = of.watermark("s")
        taken += of.release("s", progress).t.tolist()
    of.state.inputs["s"].ended = True
    taken += of.release("s", FOREVER).t.tolist()
    assert taken == sorted(t for times in expected.values() for t in times), "in time order, and none is lost"


def _admitted(times: list[int], bound: int) -> list[int]:
    greatest = np.maximum.accumulate([BEGINNING + bound, *times])[:-1]
    return [t for t, before in zip(times, greatest, strict=True) if t >= before - bound]


@pytest.mark.parametrize("batch_rows", [2, 4, 1000])
def test_partitions_that_are_read_at_different_speeds(tmp_path: Path, batch_rows: int) -> None:
    check_both(tmp_path, lambda: Session(batch_rows=batch_rows))


def test_partitions_that_are_read_in_tasks(tmp_path: Path, spark: SparkSession) -> None:
    check_both(tmp_path, lambda: Session(spark=spark, batch_rows=8))


def check_both(folder: Path, opened: Callable[[], Session]) -> None:
    """Rows of both partitions have the same times, and one of them comes after all others in a sequence."""
    for partition in PARTITIONS:
        write(folder, partition, *range(20))
    write(folder, PARTITIONS[0], 3)  # which is late in its own
    text = TEXT.format(folder=folder, more="")
    (status,) = [result.status for result in opened().execute(text, checkpoint=str(folder / "kept"))[-1:]]
    assert status is not None and status.inputs[0].late == 1
    assert answers(f"{folder}/answers.db") == sorted([*range(19)] * 2), "what is at the end may have equals to come"
    write(folder, PARTITIONS[0], 30)
    opened().execute(text, checkpoint=str(folder / "kept"))
    assert answers(f"{folder}/answers.db") == sorted([*range(19)] * 2), "the other one holds it back"
    write(folder, PARTITIONS[1], 19, 31)
    opened().execute(text, checkpoint=str(folder / "kept"), end=True)
    assert answers(f"{folder}/answers.db") == sorted([*range(20), *range(20), 19, 30, 31])


def test_a_silent_partition_is_left_behind(tmp_path: Path) -> None:
    write(tmp_path, PARTITIONS[0], *range(20))
    write(tmp_path, PARTITIONS[1])
    session = Session(batch_rows=4)
    for result in session.execute(
        TEXT.format(folder=tmp_path, more=", idle = '0.001 SECONDS'"), checkpoint=str(tmp_path / "k")
    ):
        assert result is not None
    assert answers(f"{tmp_path}/answers.db") == list(range(19))
