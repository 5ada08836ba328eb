"""At the input gate: each row is judged by the watermark just before it, and the ledger adds up whatever comes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.core.errors import LateRowError
from transom.core.schema import BIGINT, INTEGER, TIMESTAMP, VARCHAR, Schema
from transom.core.time import BEGINNING, FOREVER
from transom.pipeline import admission
from transom.pipeline.admission import REASONS, InputGate, InputState, RejectedRows
from transom.pipeline.registry import STATE_CLASSES
from transom.plan.catalogue import StreamDefinition, TableDefinition, TimeColumn
from transom.state import codec

COLUMNS = Schema.of(("n", BIGINT), ("ts", TIMESTAMP))
VALUED = Schema.of(("n", BIGINT), ("ts", TIMESTAMP), ("v", INTEGER))
FAR = 2**62


def batch(rows: list[tuple[Any, ...]], columns: Schema = COLUMNS) -> pa.RecordBatch:
    arrays = [pa.array([row[i] for row in rows], c.type) for i, c in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=columns.arrow())


def stream(bound: int, late: Any = "drop") -> StreamDefinition:
    return StreamDefinition("s", COLUMNS, TimeColumn("TS", bound), late)


@dataclass
class Model:
    """The law, row by row."""

    bound: int
    tick: int
    origin: int | None
    must_have: bool = False
    """Whether a row must have a value, which every third one has not."""
    greatest: int | None = None
    raised: int | None = None
    waiting: list[tuple[int, int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: {"used": 0, "late": 0, "rejected": 0})

    @property
    def by_disorder(self) -> int:
        if self.greatest is None:
            return BEGINNING
        return max((self.greatest - self.bound) // self.tick * self.tick, BEGINNING)

    @property
    def watermark(self) -> int:
        own = self.by_disorder
        return own if self.raised is None else max(own, self.raised)

    def judge(self, number: int, exact: int | None) -> str:
        t = None if exact is None else exact // self.tick * self.tick
        if exact is None or t is None:
            code = admission.MISSING_TIME
        elif t < BEGINNING or exact >= FOREVER:
            code = admission.OUT_OF_RANGE
        elif self.origin is not None and t < self.origin:
            code = admission.BEFORE_ORIGIN
        elif self.must_have and number % 3 == 2:
            code = admission.MISSING_VALUE
        elif t < self.watermark:
            code = admission.LATE if t < self.by_disorder else admission.IDLE
            self.counts["late"] += 1
            self.greatest = t if self.greatest is None else max(self.greatest, t)
            return REASONS[code]
        else:
            self.waiting.append((t, number))
            self.greatest = t if self.greatest is None else max(self.greatest, t)
            return ""
        self.counts["rejected"] += 1
        return REASONS[code]

    def release(self, frontier: int) -> list[tuple[int, int]]:
        due = sorted((row for row in self.waiting if row[0] < frontier), key=lambda row: row[0])
        self.waiting = [row for row in self.waiting if row[0] >= frontier]
        self.counts["used"] += len(due)
        return due


TIMES = st.none() | st.integers(-5, 40) | st.sampled_from([BEGINNING, BEGINNING - 1, FOREVER, FOREVER - 1, -FAR, FAR])
MOVES = st.lists(
    st.tuples(st.lists(TIMES, max_size=6), st.sampled_from(["", "release", "release", "idle", "restart"])), max_size=8
)


@settings(max_examples=100)
@given(
    MOVES, st.sampled_from([0, 2, 10, FAR - 1]), st.sampled_from([1, 5]), st.sampled_from([None, 0, 10]), st.booleans()
)
def test_every_row_is_somewhere_at_every_moment(
    moves: Any, bound: int, tick: int, origin: int | None, must_have: bool
) -> None:
    definition = replace(stream(bound), columns=VALUED, not_null=("v",) if must_have else ())
    model, entry, state = Model(bound, tick, origin, must_have), InputGate(definition, tick, origin), InputState()
    number = 0
    firsts: list[int] = []
    for times, then in moves:
        rows = list(enumerate(times, start=number))
        number += len(times)
        expected = [(n, reason) for n, t in rows if (reason := model.judge(n, t))]
        rejected_rows = entry.admit(
            state, entry.classify(batch([(n, t, None if n % 3 == 2 else 7) for n, t in rows], VALUED))
        )
        found = (
            []
            if rejected_rows is None
            else list(zip(rejected_rows.values["n"].to_pylist(), rejected_rows.reasons, strict=True))
        )
        assert found == expected
        assert entry.watermark(state) == model.watermark
        firsts += [t for t, _ in model.waiting]
        if then == "release":
            frontier = model.watermark
            values, t = entry.release(state, frontier)
            numbers = [] if values is None else values["n"].to_pylist()
            assert list(zip(t.tolist(), numbers, strict=True)) == model.release(frontier)
        elif then == "idle":
            model.raised = state.raised = max(model.watermark, 20)
        elif then == "restart":
            state = codec.decode(codec.encode(state), STATE_CLASSES)
        ledger = state.ledger
        assert ledger.rows_in == number
        assert (ledger.used, ledger.late, ledger.rejected) == tuple(model.counts.values())
        assert ledger.waiting == len(model.waiting) == sum(len(part.t) for part in state.waiting)
        assert state.first == min(firsts, default=None)
    state.ended = True
    assert entry.watermark(state) == FOREVER


def test_a_late_row_fails_the_query_where_that_is_asked_for_and_nothing_of_its_batch_is_taken() -> None:
    entry, state = InputGate(stream(2, late="fail"), 1), InputState()
    entry.admit(state, entry.classify(batch([(0, 10), (1, 8)])))
    with pytest.raises(LateRowError, match="'s' came late") as caught:
        entry.admit(state, entry.classify(batch([(2, 11), (3, 20), (4, 17)])))
    assert caught.value.remedy and "1970-01-01 00:00:00.000017" in str(caught.value)
    assert (state.ledger.rows_in, state.ledger.late, state.ledger.waiting) == (2, 0, 2)
    assert sum(len(part.t) for part in state.waiting) == 2 and state.greatest == 10


def test_a_late_row_of_a_file_that_was_not_declared_says_what_to_declare() -> None:
    undeclared = replace(stream(0, late="fail"), name="a.csv [..]", properties={"connector": "files", "path": "a.csv"})
    error = InputGate(undeclared, 1).late_row(17)
    assert error.remedy and "path = 'a.csv', time = 'TS', bound = " in error.remedy


# --- changing tables -------------------------------------------------------------------------------------------------

CHANGES = Schema.of(("ts", TIMESTAMP), ("op", VARCHAR), ("k", INTEGER))
TABLE = TableDefinition("t", CHANGES, TimeColumn("ts", 0), "op", ("k",))


def admitted(definition: TableDefinition, rows: list[tuple[Any, ...]]) -> tuple[InputState, RejectedRows | None]:
    state = InputState()
    gate = InputGate(definition, 1)
    return state, gate.admit(state, gate.classify(batch(rows, definition.columns)))


def test_changes_without_a_meaning_are_rejected_each_for_its_own_reason() -> None:
    rows = [(1, "+", 1), (2, "*", 1), (3, None, 1), (4, "-", None), (None, "?", None), (0, "?", None), (4, "+", 2)]
    state, rejected_rows = admitted(TABLE, rows)
    assert rejected_rows is not None
    codes = [admission.BAD_CHANGE] * 2 + [admission.MISSING_KEY, admission.MISSING_TIME, admission.LATE]
    assert rejected_rows.reasons == [REASONS[code] for code in codes]
    assert (state.ledger.rejected, state.ledger.late, state.ledger.waiting) == (4, 1, 2)


def test_a_rejected_change_moves_the_watermark_as_every_row_does() -> None:
    state, rejected_rows = admitted(TABLE, [(9, "*", 1), (4, "+", 1)])
    assert rejected_rows is not None and rejected_rows.reasons == [
        REASONS[admission.BAD_CHANGE],
        REASONS[admission.LATE],
    ]
    assert state.greatest == 9


def test_time_begins_with_a_row_not_with_the_minus_of_none() -> None:
    state, _ = admitted(TABLE, [(3, "-", 1), (5, "+", 1)])
    assert state.first == 5
    state, _ = admitted(TABLE, [(3, "-", 1)])
    assert state.first is None


def test_times_are_timestamps_of_any_year() -> None:
    rows = [(0, datetime(1, 1, 1)), (1, datetime(1969, 12, 31)), (2, datetime(9999, 12, 31, 23, 59, 59, 999_998))]
    entry, state = InputGate(stream(0), 1), InputState()
    assert entry.admit(state, entry.classify(batch(rows))) is None
    _, t = entry.release(state, FOREVER)
    assert t.tolist() == [BEGINNING, -86_400_000_000, FOREVER - 1]
