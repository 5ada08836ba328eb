"""Results that are folded into groups as they come: in any order and number, saved in between, and void with their
attempt."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from transom.core.schema import BIGINT
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateSpec
from transom.kernels.slide_join.fold import Fold, FoldedGroups
from transom.kernels.slide_join.memory import BasicWindow, SlideJoinState, SlideWork
from transom.kernels.slide_join.sorted_run import SortedRun
from transom.pipeline.registry import STATE_CLASSES
from transom.plan.expression import ColumnRef
from transom.state import codec
from transom.state.checks import Unsound
from transom.state.spill import SpillStore

CALLS = (
    AggregateSpec("count", None, False),
    AggregateSpec("sum", 1, False),
    AggregateSpec("min", 1, False),
    AggregateSpec("count", 1, True),
)
INTEGERS = [(name, pa.int64()) for name in ("k", "n", "low", "d")]
SHOWN = pa.schema([*INTEGERS[:2], ("s", pa.decimal128(38, 0)), *INTEGERS[2:]])
KERNEL = AggregateKernel((0,), CALLS, SHOWN, (pa.int64(), pa.int64()), running=True)
COLUMNS = tuple(ColumnRef(i, BIGINT, name) for i, name in enumerate(SHOWN.names))
FOLD = Fold(KERNEL, None, COLUMNS, tuple(SHOWN.names))


def rows_of(groups: FoldedGroups, fold: Fold = FOLD) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for batch in fold.results(groups) for row in batch.to_pylist())


def test_however_results_come_groups_are_the_same() -> None:
    random = Random(1)
    rows = [(random.randint(0, 40), random.randint(-9, 9)) for _ in range(400)]
    by_key: dict[int, list[int]] = {}
    for k, x in rows:
        by_key.setdefault(k, []).append(x)
    expected = sorted((k, len(xs), sum(xs), min(xs), len(set(xs))) for k, xs in by_key.items())
    for size in (1, 7, 400):
        random.shuffle(rows)
        groups = FOLD.start()
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            FOLD.add(groups, pa.record_batch({"0": [k for k, _ in some], "1": [x for _, x in some]}))
            if random.random() < 0.1:
                Fold.measure(groups)
                assert groups.bytes > 0
                groups = codec.decode(codec.encode(groups), STATE_CLASSES)
                FOLD.check(groups)
        assert rows_of(groups) == expected


def test_groups_that_cannot_be_are_rejected() -> None:
    groups = FOLD.start()
    FOLD.add(groups, pa.record_batch({"0": [1, 2], "1": [5, 6]}))
    groups.words = groups.words[:0]
    with pytest.raises(Unsound):
        FOLD.check(groups)


def test_an_attempt_that_is_void_has_no_groups() -> None:
    store, batch = SpillStore(), pa.record_batch({"a": [1]})
    groups = FOLD.start()
    FOLD.add(groups, pa.record_batch({"0": [1], "1": [5]}))
    Fold.measure(groups)
    window = BasicWindow(10, [SortedRun(0, 10, 50, 1, 8, batch)])
    state = SlideJoinState(windows=[window], works=[SlideWork(10, kind="full", groups=groups)])
    assert state.bytes == 8 + groups.bytes
    state.void(window, store)
    assert state.works[0].groups is None and state.bytes == 8
    store.close()
