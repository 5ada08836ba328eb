"""Queries that share a join as one pipeline: what it keeps, and what is left when queries have gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from tests.run_locally import batch_of
from transom.core.errors import CheckpointError
from transom.core.time import to_datetime
from transom.cql.statements import parse_statements
from transom.kernels.operator import Operator
from transom.kernels.shared_join.node import Narrow
from transom.pipeline.consumer import ConsumerSpec
from transom.pipeline.driver import Pipeline
from transom.pipeline.group import GroupPipeline
from transom.pipeline.memory import state_bytes, state_rows
from transom.pipeline.part import Part
from transom.plan.algebra import Aggregate, Node
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner.plan import Planner, plan
from transom.planner.sharing_shape import Sharable, sharable

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, WATERMARK FOR ts AS ts);
CREATE STREAM t (ts TIMESTAMP INVISIBLE, k INTEGER, g VARCHAR, WATERMARK FOR ts AS ts);
"""
JOIN = "SELECT s.k{2} FROM s [{0}], t [{1}] WHERE s.k = t.k"
CATALOGUE = Catalogue()
parse_statements(DECLARATIONS, CATALOGUE)


def spec(name: str, query: str, emit: str = "changes") -> ConsumerSpec:
    (statement,) = parse_statements(query, CATALOGUE)
    assert isinstance(statement, QueryStatement)
    requested = sharable(statement.query, CATALOGUE)
    assert isinstance(requested, Sharable)
    return ConsumerSpec(name, requested, emit)


def by_time(seconds: int, columns: str = "") -> str:
    return JOIN.format(f"RANGE {seconds} SECONDS", f"RANGE {seconds} SECONDS", columns)


def feed(pipeline: Pipeline, first: int, last: int) -> None:
    for name in ("s", "t"):
        definition = CATALOGUE.relations[name]
        assert isinstance(definition, StreamDefinition)
        rows = [(to_datetime(0) + timedelta(seconds=i), i % 5, f"a text of row {i}") for i in range(first, last)]
        pipeline.push(name, batch_of(definition.columns, rows))


def answers(group: GroupPipeline) -> list[pa.RecordBatch]:
    """Of a step, in the order of the queries."""
    found: dict[int, pa.RecordBatch] = {}
    assert group.advance(found.__setitem__) and list(found) == list(range(len(group.runners)))
    return list(found.values())


def kept(group: GroupPipeline) -> int:
    """Rows in the join."""
    return state_rows(group.subplan.state.part.operators[-1])


def test_many_queries_keep_what_the_widest_keeps_alone() -> None:
    (widest,) = parse_statements(by_time(300), CATALOGUE)
    assert isinstance(widest, QueryStatement)
    alone = Pipeline(plan(widest.query, CATALOGUE), CATALOGUE, "lifetimes")
    group = GroupPipeline([spec(str(i), by_time(3 * i), "lifetimes") for i in range(1, 101)], CATALOGUE)
    for first in range(0, 1000, 250):
        feed(alone, first, first + 250)
        alone.advance()
        feed(group.subplan, first, first + 250)
        group.advance()
    of_runners = sum(state_bytes(runner.state) for runner in group.runners)
    assert state_rows(alone.state.part.operators) == kept(group) > 500
    assert state_bytes(group.subplan.state.part) + of_runners <= 1.2 * state_bytes(alone.state.part)


def test_what_only_a_query_that_has_gone_wanted_is_let_go() -> None:
    group = GroupPipeline([spec("narrow", by_time(5)), spec("wide", by_time(200, ", s.g"))], CATALOGUE)
    feed(group.subplan, 0, 200)
    group.advance()
    assert kept(group) > 300
    group.remove("wide")
    assert group.subplan.root.inputs[0].schema.names == ["k"]
    feed(group.subplan, 200, 210)
    group.advance()
    assert kept(group) < 40


@pytest.mark.parametrize("window", ["RANGE 50 SECONDS", "ROWS 30", "ROWS 30 RANGE 50 SECONDS"])
def test_a_query_that_comes_sees_its_columns_from_there_on(window: str) -> None:
    group = GroupPipeline([spec("first", by_time(12))], CATALOGUE)
    feed(group.subplan, 0, 20)
    group.advance()
    group.add(spec("second", JOIN.format(window, window, ", s.g, t.g AS h")))
    feed(group.subplan, 20, 40)
    first, second = answers(group)
    assert len(first) and len(second) and second.column("g").null_count == second.column("h").null_count == 0
    since = to_datetime(0) + timedelta(seconds=19)
    assert min(second.column("at").to_pylist()) >= since
    assert all(int(text.split()[-1]) >= 19 for text in second.column("g").to_pylist())


def test_nothing_open_is_left_of_queries_that_count_rows() -> None:
    counting = JOIN.format("ROWS 5", "ROWS 3 RANGE 9 SECONDS", "")
    group = GroupPipeline([spec("counts", counting), spec("other", by_time(5))], CATALOGUE)
    for first in range(0, 60, 7):
        feed(group.subplan, first, first + 7)
        group.advance()
    counts = group.runners[0].state.part
    assert 0 < counts.open_ids.in_use <= 5 * 3
    before = group.subplan.state.part.open_ids.in_use
    group.remove("counts")
    for first in range(63, 120, 7):
        feed(group.subplan, first, first + 7)
        group.advance()
    assert group.subplan.state.part.open_ids.in_use <= before
    assert all(runner.state.part.open_ids.in_use == 0 for runner in group.runners)


def test_a_checkpoint_knows_its_queries_by_name() -> None:
    group = GroupPipeline([spec("a", by_time(5)), spec("b", by_time(9))], CATALOGUE)
    feed(group.subplan, 0, 20)
    group.advance()
    saved = group.snapshot()
    other = GroupPipeline([spec("b", by_time(9)), spec("c", by_time(30))], CATALOGUE)
    other.restore(saved)
    assert [runner.state.begin for runner in other.runners] == [None, group.subplan.state.gates.frontier]
    with pytest.raises(CheckpointError, match="another query"):
        GroupPipeline([spec("a", by_time(6))], CATALOGUE).restore(saved)
    with pytest.raises(CheckpointError):
        GroupPipeline([spec("a", by_time(5))], CATALOGUE).restore(saved[:-1])


def test_columns_that_a_query_only_picks_are_picked_where_it_narrows_the_join() -> None:
    picked, computed = spec("picked", by_time(5, ", t.g AS h")), spec("computed", by_time(5, " + 1 AS m, t.g AS h"))
    group = GroupPipeline([picked, computed], CATALOGUE)
    of_picked, of_computed = (runner.part._kernels for runner in group.runners)
    assert of_picked[1] == () and of_picked[0][0].schema.names == ["k", "h"]  # type: ignore[attr-defined]
    assert len(of_computed[1]) == 1
    feed(group.subplan, 0, 20)
    first, second = (rows.column("h").to_pylist() for rows in answers(group))
    assert first == second and len(first) > 20
    assert group.runners[0].state.part.counters[1].rows_out == group.runners[0].state.part.counters[0].rows_out > 0


def test_who_comes_or_goes_leaves_the_plans_of_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [by_time(5 + i, ", s.g" * (i % 2)) for i in range(50)]
    queries += [f"SELECT s.k, COUNT(*) AS n FROM s [RANGE {i} SECONDS], t WHERE s.k = t.k GROUP BY s.k" for i in (3, 4)]
    group = GroupPipeline([spec(str(i), query) for i, query in enumerate(queries[:-1])], CATALOGUE)
    feed(group.subplan, 0, 20)
    group.advance()
    others = list(group.runners)
    planned: list[type] = []
    parts: list[Part] = []
    plan_of, make = Planner.plan, Part.__init__

    def plan_noted(self: Planner, node: Node) -> Operator:
        planned.append(type(node))
        return plan_of(self, node)

    def make_noted(self: Part, *given: Any, **more: Any) -> None:
        parts.append(self)
        make(self, *given, **more)

    monkeypatch.setattr(Planner, "plan", plan_noted)
    monkeypatch.setattr(Part, "__init__", make_noted)
    newcomer = group.add(spec("newcomer", queries[-1]))
    assert planned.count(Narrow) == 1 and planned.count(Aggregate) == 1
    assert parts == [newcomer.part, group.subplan.part]
    planned.clear()
    parts.clear()
    group.remove("7")
    assert Narrow not in planned and parts == [group.subplan.part]
    staying = [runner for runner in others if runner.spec.name != "7"]
    assert all(one is other for one, other in zip(group.runners, [*staying, newcomer], strict=True))
    feed(group.subplan, 20, 30)
    assert len(answers(group)) == len(staying) + 1
