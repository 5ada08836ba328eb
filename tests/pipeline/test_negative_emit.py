"""Answers over negative tuples leave in the same forms and report the same story."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.negative.changelogs import ChangelogRelation
from tests.kernels.relations import CUTS, LAST, TYPES, relations
from tests.kernels.stepping import Life, Relation, snapshot, values_of
from transom.core.delta import Changelog
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
from transom.state.open_ids import OpenIdPool

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
    signed, state = ChangelogRelation(relation.lives, TYPES, Random(seed)), emit.start()
    reported: list[Life] = []
    before = 0
    for frontier in cuts:
        out = emit.write(state, signed.delta(before, frontier), Step(before, frontier, 0, OpenIdPool()))
        assert out.schema == output_schema("lifetimes", SCHEMA)
        reported += as_lives(out)
        if restart:
            state = codec.decode(codec.encode(state), STATE_CLASSES)
        before = frontier
    assert all(te is not None and ta < te < LAST for _, ta, te in reported)
    assert len(reported) == sum(te is not None and te < LAST for _, _, te in relation.lives)
    remaining = as_lives(emit.remaining(state))
    assert all(te is None for _, _, te in remaining)
    assert len(remaining) == len(relation.lives) - len(reported) == state.slots.in_use
    expected, found = (RelationHistory.of_lifetimes(rows) for rows in (relation.lives, reported + remaining))
    for instant in range(LAST):
        assert found.snapshot(instant) == expected.snapshot(instant), instant


@settings(max_examples=30)
@given(relations(), CUTS, st.booleans())
def test_latest_and_changes_are_those_of_the_direct_method(relation: Relation, cuts: list[int], restart: bool) -> None:
    for name in ("latest", "changes"):
        emit = emit_of(name, SCHEMA, negative=True)
        signed, open_ids = ChangelogRelation(relation.lives, TYPES), OpenIdPool()
        direct, negative = emit.start(), emit.start()
        before = 0
        relation.waiting.clear()
        for frontier in cuts:
            step = Step(before, frontier, 0, open_ids)
            expected = emit.write(direct, relation.delta(open_ids, before, frontier), step)  # type: ignore[arg-type]
            found = emit.write(negative, signed.delta(before, frontier), step)  # type: ignore[arg-type]
            open_ids.finish_step()
            assert values_of(found) == values_of(expected)
            if name == "latest":
                assert len(found) == snapshot(relation.lives, frontier - 1).total()
            if restart:
                negative = codec.decode(codec.encode(negative), STATE_CLASSES)
            before = frontier


def test_of_equal_rows_the_oldest_departs() -> None:
    emit = NegativeLifetimesEmit(Schema.of(("a", BIGINT)))
    state = emit.start()
    rows = ChangelogRelation([((1,), 5, 30), ((1,), 3, 20), ((1,), 2, None)], [BIGINT])
    reported = []
    for before, frontier in ((0, 4), (4, 10), (10, 40)):
        reported += emit.write(state, rows.delta(before, frontier), Step(before, frontier, 0, OpenIdPool())).to_pylist()
    assert [
        (from_datetime(row["ta"]), from_datetime(row["te"])) for row in sorted(reported, key=lambda row: row["te"])
    ] == [
        (2, 20),
        (3, 30),
    ]
    assert [from_datetime(t) for t in emit.remaining(state)["ta"].to_pylist()] == [5]


def test_memory_is_that_of_the_rows_alive() -> None:
    began = Beginnings.of([pa.string()])
    signed = ChangelogRelation([((f"value number {t // 3}",), t, t + 40) for t in range(2_000)], [pa.string()])
    sizes = []
    for before in range(0, 2_100, 50):
        rows: Changelog = signed.delta(before, before + 50)
        assert (began.match(rows) == rows.t[: rows.departed] - 40).all()
        sizes.append(saved_bytes(began))
    assert sizes[-1] <= 1.1 * max(sizes[:5]) and began.slots.in_use == 0 == began.keys.slots.in_use
    assert began.values.columns[0].alive == 0  # type: ignore[union-attr]
