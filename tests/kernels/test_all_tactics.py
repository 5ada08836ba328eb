"""Every tactic is whole, and one from outside needs nothing but to be on the list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from inspect import isclass
from pkgutil import walk_packages
from typing import Any

import pyarrow as pa
import pytest

from tests.run_locally import batch_of
from transom import kernels
from transom.core.time import to_datetime
from transom.cql.statements import parse_statements
from transom.kernels import all_tactics
from transom.kernels.all_tactics import TACTICS
from transom.kernels.join.join import JoinKernel, JoinState
from transom.kernels.join.tactic import LazyHashTactic
from transom.kernels.kernel import Kernel, Step
from transom.kernels.multiway import cost as multiway_cost
from transom.kernels.operator import Operator, Site, Tactic
from transom.pipeline import registry
from transom.pipeline.driver import Pipeline
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.plan.options import OPTIONS
from transom.planner import join, joinagg, multiway_choice, slide_join
from transom.planner.explain import explain_text
from transom.planner.plan import plan
from transom.planner.sharing import consumer, shared_join, shared_subplan
from transom.planner.sharing_plan import sharable_plans
from transom.planner.sharing_shape import Sharable, sharable
from transom.planner.sharing_windows import sharable_windows, widened
from transom.state import codec

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP INVISIBLE, k INTEGER, v VARCHAR, f DOUBLE, WATERMARK FOR ts AS ts);
CREATE TABLE c (ts TIMESTAMP INVISIBLE, op VARCHAR, k INTEGER, WATERMARK FOR ts AS ts) WITH (changes = 'op');
CREATE TABLE u (ts TIMESTAMP INVISIBLE, k INTEGER, PRIMARY KEY (k), WATERMARK FOR ts AS ts);
CREATE TABLE names (k INTEGER, label VARCHAR);
"""
PAIRS = "FROM s [RANGE 9 SECONDS] AS a, s [NOW] AS b WHERE a.k = b.k"
SLIDES = "s [RANGE 6 SECONDS SLIDE 2 SECONDS]"
SLIDING = f"RSTREAM(SELECT a.k FROM {SLIDES} AS a, {SLIDES} AS b WHERE a.k = b.k)"
PARTNERS = ("s [RANGE 9 SECONDS] AS b ON a.k = b.k", "c AS b ON a.k = b.k", "c AS b ON a.k < b.k")
WORDS = ("EXISTS", "NOT EXISTS")
EITHER_WAY = [
    "SELECT s.v FROM s [RANGE 5 SECONDS], c WHERE s.k = c.k",
    "SELECT s.v FROM s [ROWS 5], u WHERE s.k = u.k",
    "SELECT a.k + 1 AS k FROM s [NOW] AS a, names WHERE a.k < names.k",
    "SELECT k FROM s [ROWS 2] WHERE f > 0.5 UNION ALL SELECT k FROM s [PARTITION BY k ROWS 2]",
    "SELECT k FROM s [ROWS 4 SLIDE 2] EXCEPT SELECT k FROM s [RANGE 5 SECONDS]",
    f"RSTREAM(SELECT DISTINCT k FROM {SLIDES})",
    "ISTREAM(SELECT k FROM s [RANGE 5 SECONDS])",
    "DSTREAM(SELECT k FROM s [RANGE 5 SECONDS])",
    "ISTREAM(SELECT k FROM s [ROWS 5])",
    "DSTREAM(SELECT k FROM s [ROWS 5])",
    f"SELECT a.k {PAIRS}",
    "SELECT k, SUM(f) FROM s [RANGE 5 SECONDS] GROUP BY k",
    "SELECT a.v FROM s AS a, s AS b WHERE a.ts = b.ts",
    *(f"SELECT a.v FROM s [NOW] AS a LEFT JOIN {right}" for right in PARTNERS),
    *(
        f"SELECT a.v FROM s [NOW] AS a WHERE {word} (SELECT 1 FROM {right.replace(' ON ', ' WHERE ')})"
        for word in WORDS
        for right in PARTNERS
    ),
    "SELECT k FROM s [RANGE 5 SECONDS] ORDER BY f LIMIT 2",
    "SELECT e FROM s [ROWS 5], UNNEST([k, 1]) AS u(e)",
    "SELECT v, window_end FROM HOP(s, ts, 2 SECONDS, 4 SECONDS)",
    "SELECT k, SUM(f) FROM TUMBLE(s, ts, 5 SECONDS) GROUP BY k, window_end",
    "SELECT v FROM s [PARTITION BY k SESSION 5 SECONDS]",
    "SELECT v, window_end FROM SESSION(s PARTITION BY k, ts, 5 SECONDS)",
    "SELECT v FROM DEDUPLICATE(s PARTITION BY k, 5 SECONDS)",
]
QUERIES = [
    *EITHER_WAY,
    *(f"SET lifetimes = 'negative'; {query}" for query in EITHER_WAY),
    "SELECT k, SUM(f) FROM s GROUP BY k",
    "SELECT k FROM s QUALIFY RANK() OVER (ORDER BY f) <= 2",
    *(
        f"SET joinagg = '{name}'; SELECT b.v, COUNT(*) {PAIRS} GROUP BY b.v"
        for name in ("factorised", "ic", "tc", "adaptive")
    ),
    *(
        f"SET multiway = '{name}'; SELECT a.v {PAIRS}"
        for name in ("mjoin", "parallel_mjoin", "parallel_tree", "adaptive")
    ),
    *(f"SET slide_join = '{name}'; {SLIDING}" for name in ("incremental", "full", "hybrid")),
    f"SET memory = '64 MB'; {SLIDING}",
]
SHARED = [
    f"SELECT a.k {PAIRS}",
    f"SELECT a.k {PAIRS.replace('NOW', 'ROWS 3')}",
    *(f"SET join = '{name}'; SELECT a.k {PAIRS}" for name in ("lazy_hash", "nested_loop")),
]
SHARED_PLAN = "SELECT k FROM (SELECT k, SUM(f) AS f FROM s [RANGE 5 SECONDS] GROUP BY k) AS v WHERE f > 1"


def parsed(text: str) -> tuple[QueryStatement, Catalogue]:
    catalogue = Catalogue()
    statement = parse_statements(DECLARATIONS + text, catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return statement, catalogue


@cache
def operators() -> list[tuple[Operator, Catalogue]]:
    """Of plans that have every tactic, run in either way."""
    found = []
    for text in QUERIES:
        statement, catalogue = parsed(text)
        found += [(operator, catalogue) for operator in plan(statement.query, catalogue).walk()]
    for text in SHARED:
        statement, catalogue = parsed(text)
        wanted = sharable(statement.query, catalogue)
        assert isinstance(wanted, Sharable)
        root = consumer(wanted, catalogue, shared_join([wanted], catalogue))
        found += [(operator, catalogue) for operator in root.walk()]
    statement, catalogue = parsed(SHARED_PLAN)
    parts = sharable_plans(statement.query, catalogue)
    assert not isinstance(parts, str)
    root = consumer(parts[0], catalogue, shared_subplan(parts[:1], catalogue))
    found += [(operator, catalogue) for operator in root.walk()]
    statement, catalogue = parsed(SLIDING)
    asked = sharable_windows(statement.query, catalogue)
    assert not isinstance(asked, str)
    (part,) = widened([asked])
    root = consumer(part, catalogue, shared_subplan([part], catalogue))
    found += [(operator, catalogue) for operator in root.walk()]
    return found


def of(tactic: type[Tactic]) -> list[tuple[Operator, Catalogue]]:
    return [(operator, catalogue) for operator, catalogue in operators() if type(operator.tactic) is tactic]


def classes_in(state: Any) -> Iterator[type]:
    if is_dataclass(state):
        yield type(state)
        for field in fields(state):
            yield from classes_in(getattr(state, field.name))
    elif isinstance(state, list | tuple | dict):
        for item in state.values() if isinstance(state, dict) else state:
            yield from classes_in(item)


def test_no_plan_has_a_tactic_that_is_not_on_the_list() -> None:
    assert {type(operator.tactic) for operator, _ in operators()} <= set(TACTICS)
    assert len(set(TACTICS)) == len(TACTICS)


@pytest.mark.parametrize("tactic", TACTICS, ids=lambda tactic: tactic.__name__)
def test_a_tactic_is_whole(tactic: type[Tactic]) -> None:
    """It is in the folder of its operator, says what it does and keeps, and its state is saved by its own classes."""
    assert tactic.__module__.startswith("transom.kernels.") and tactic.__module__.endswith(".tactic")
    assert of(tactic), "no query of this test runs it"
    started = set()
    for operator, catalogue in of(tactic):
        assert isinstance(operator.node, tactic.nodes)
        assert operator.tactic.describe(operator) and operator.tactic.keeps and operator.tactic.costs
        for kernel in operator.tactic.kernels(operator, Site(catalogue, tick=1)):
            state = kernel.start()
            if state is not None:
                started.add(type(state))
                assert set(classes_in(state)) <= set(registry.with_parts(tactic.states))
                codec.decode(codec.encode(state), registry.STATE_CLASSES)
    assert started == set(tactic.states)


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("join", join.TACTICS),
        ("joinagg", joinagg.TACTICS),
        ("multiway", (*multiway_cost.TACTICS, multiway_choice.ADAPTIVE)),
        ("slide_join", (*slide_join.TACTICS, "off")),
    ],
)
def test_every_tactic_among_several_can_be_forced(option: str, names: tuple[str, ...]) -> None:
    """And nothing else can: the option names them all."""
    assert {word.strip("',") for word in OPTIONS[option].expects.split() if word != "or"} == {"auto", *names}


# --- one from outside ------------------------------------------------------------------------------------------------


@dataclass
class HandedState:
    inner: JoinState
    steps: int = 0


@dataclass(frozen=True)
class HandedKernel:
    """A join that counts its steps."""

    inner: JoinKernel

    def start(self) -> HandedState:
        return HandedState(self.inner.start())

    def step(self, state: HandedState, inputs: Any, step: Step) -> Any:
        state.steps += 1
        return self.inner.step(state.inner, inputs, step)


class HandedTactic(LazyHashTactic):
    name = "handed"
    states = (HandedState,)
    work = "a step more a step"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        (inner,) = LazyHashTactic(self.keeps).kernels(operator, site)
        assert isinstance(inner, JoinKernel)
        return (HandedKernel(inner),)


JOIN = "SELECT a.k, b.f FROM s [RANGE 9 SECONDS] AS a, s [ROWS 3] AS b WHERE a.k = b.k"


def answer(restart: bool) -> tuple[list[dict[str, Any]], Pipeline]:
    """What the join reports of some rows; a restart goes on with what the codec gave back."""
    statement, catalogue = parsed(JOIN)
    definition = catalogue.relations["s"]
    assert isinstance(definition, StreamDefinition)
    pipeline = Pipeline(plan(statement.query, catalogue), catalogue)
    found: list[pa.RecordBatch] = []
    for second in range(20):
        at = to_datetime(0) + timedelta(seconds=second)
        pipeline.push("s", batch_of(definition.columns, [(at, second % 3, "a", float(second))]))
        output, _ = pipeline.advance()
        found += [] if output is None else [output.rows]
        if restart:
            again = Pipeline(plan(statement.query, catalogue), catalogue)
            again.restore(pipeline.snapshot())
            pipeline = again
    return [row for batch in found for row in batch.to_pylist()], pipeline


def test_a_tactic_from_outside_is_planned_explained_run_and_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = answer(restart=False)
    monkeypatch.setattr(all_tactics, "TACTICS", (HandedTactic, *TACTICS))
    monkeypatch.setattr(registry, "STATE_CLASSES", registry.saved_classes(all_tactics.TACTICS))
    found, pipeline = answer(restart=True)
    assert found == expected and len(found) > 20
    text = explain_text(pipeline.root)
    assert "join handed: s.k = s.k" in text and "a step more a step" in text
    assert "not lazy_hash: handed does it with less work" in text
    assert HandedState in classes_in(pipeline.state)


ALWAYS_STEPPED = {"CreditKernel", "CreditScanKernel", "IncrementalKernel", "MergeAggregateKernel"}
"""Aggregates over joins, which are stepped though nothing comes in."""


def test_every_other_kernel_can_be_left_alone_while_nothing_comes_in() -> None:
    modules = [import_module(found.name) for found in walk_packages(kernels.__path__, "transom.kernels.")]
    steps = {
        name: hasattr(class_, "next_timer")
        for module in modules
        for name, class_ in vars(module).items()
        if isclass(class_) and class_.__module__ == module.__name__ and {"start", "step"} <= set(dir(class_))
    }
    del steps["Kernel"]
    assert len(steps) > 25 and {name for name, punctual in steps.items() if not punctual} == ALWAYS_STEPPED
