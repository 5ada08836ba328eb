"""Answers over negative tuples leave in the same forms and tell the same story."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.negative.signed import SignedRelation
from tests.kernels.relations import CUTS, LAST, TYPES, relations
from tests.kernels.stepping import Life, Relation, snapshot, values_of
from transom.core.delta import SignedDelta
from transom.core.schema import BIGINT, DOUBLE, VARCHAR, Schema
from transom.core.time import from_datetime
from transom.kernels.kernel import Step
from transom.kernels.negative.beginnings import Beginnings
from transom.pipeline.answer import output_schema
from transom.pipeline.emit import LifetimesEmit, NegativeLifetimesEmit, emit_of
from transom.pipeline.registry import STATE_CLASSES
from transom.runtimes.reference.history import RelationHistory
from transom.state import codec
from transom.state.codec import saved_bytes
from transom.state.holders import HolderPool

SCHEMA = Schema.of(("c0", VARCHAR), ("c1", DOUBLE))


def test_the_form_of_lifetimes_depends_on_the_method() -> None:
    assert isinstance(emit_of("lifetimes", SCHEMA), LifetimesEmit)
    assert isinstance(emit_of("lifetimes", SCHEMA, negative=True), NegativeLifetimesEmit)
    assert emit_of("changes", SCHEMA, negative=True) == emit_of("changes", SCHEMA)


def as_lives(rows: pa.RecordBatch) -> list[Life]:
    times = [[None if t is None else from_datetime(t) for t in rows[name].to_pylist()] for name in ("ta", "te")]
    return list(zip(values_of(rows.select(["c0", "c1"])), *times, strict=True))


@settings(max_examples=60)
@given(relations(), CUTS, st.booleans(), st.integers(0, 99))
def test_lifetimes_are_the_history(relation: Relation, cuts: list[int], restart: bool, seed: int) -> None:
    emit = NegativeLifetimesEmit(SCHEMA)
    signed, state = SignedRelation(relation.lives, TYPES, Random(seed)), emit.start()
    told: list[Life] = []
    before = 0
    for upto in cuts:
        out = emit.write(state, signed.delta(before, upto), Step(before, upto, 0, HolderPool()))
        assert out.schema == output_schema("lifetimes", SCHEMA)
        told += as_lives(out)
        if restart:
            state = codec.decode(codec.encode(state), STATE_CLASSES)
        before = upto
    assert all(te is not None and ta < te < LAST for _, ta, te in told)
    assert len(told) == sum(te is not None and te < LAST for _, _, te in relation.lives)
    remaining = as_lives(emit.remaining(state))
    assert all(te is None for _, _, te in remaining)
    assert len(remaining) == len(relation.lives) - len(told) == state.slots.in_use
    expected, found = (RelationHistory.of_lifetimes(rows) for rows in (relation.lives, told + remaining))
    for instant in range(LAST):
        assert found.snapshot(instant) == expected.snapshot(instant), instant


@settings(max_examples=30)
@given(relations(), CUTS, st.booleans())
def test_latest_and_changes_are_those_of_the_direct_method(relation: Relation, cuts: list[int], restart: bool) -> None:
    for name in ("latest", "changes"):
        emit = emit_of(name, SCHEMA, negative=True)
        signed, holders = SignedRelation(relation.lives, TYPES), HolderPool()
        direct, negative = emit.start(), emit.start()
        before = 0
        relation.waiting.clear()
        for upto in cuts:
            step = Step(before, upto, 0, holders)
            expected = emit.write(direct, relation.delta(holders, before, upto), step)  # type: ignore[arg-type]
            found = emit.write(negative, signed.delta(before, upto), step)  # type: ignore[arg-type]
            holders.finish_step()
            assert values_of(found) == values_of(expected)
            if name == "latest":
                assert len(found) == snapshot(relation.lives, upto - 1).total()
            if restart:
                negative = codec.decode(codec.encode(negative), STATE_CLASSES)
            before = upto


def test_of_equal_rows_the_oldest_departs() -> None:
    emit = NegativeLifetimesEmit(Schema.of(("a", BIGINT)))
    state = emit.start()
    rows = SignedRelation([((1,), 5, 30), ((1,), 3, 20), ((1,), 2, None)], [BIGINT])
    told = []
    for before, upto in ((0, 4), (4, 10), (10, 40)):
        told += emit.write(state, rows.delta(before, upto), Step(before, upto, 0, HolderPool())).to_pylist()
    assert [
        (from_datetime(row["ta"]), from_datetime(row["te"])) for row in sorted(told, key=lambda row: row["te"])
    ] == [
        (2, 20),
        (3, 30),
    ]
    assert [from_datetime(t) for t in emit.remaining(state)["ta"].to_pylist()] == [5]


def test_memory_is_that_of_the_rows_alive() -> None:
    began = Beginnings.of([pa.string()])
    signed = SignedRelation([((f"value number {t // 3}",), t, t + 40) for t in range(2_000)], [pa.string()])
    sizes = []
    for before in range(0, 2_100, 50):
        rows: SignedDelta = signed.delta(before, before + 50)
        assert (began.match(rows) == rows.t[: rows.departed] - 40).all()
        sizes.append(saved_bytes(began))
    assert sizes[-1] <= 1.1 * max(sizes[:5]) and began.slots.in_use == 0 == began.keys.slots.in_use
    assert began.values.columns[0].alive == 0  # type: ignore[union-attr]
