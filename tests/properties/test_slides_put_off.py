"""Joins within any budget over streams that do not wait: what is called complete equals the reference.

The clock is the test's: every look at it takes a while, so that slides come due while others are being made. Each
slide is completed once, none that is not complete is called so, and in the end all are; also over restarts.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from tests.emitted_slides import EmittedSlides, slide_state
from tests.profile import examples
from tests.properties.seeds import over_seeds
from tests.run_locally import batch_of
from transom.core.time import SECOND, to_datetime
from transom.cql.statements import parse_statements
from transom.kernels.slide_join import labour
from transom.kernels.slide_join.budget import RunBudget
from transom.pipeline.driver import Pipeline
from transom.plan.algebra import Node
from transom.plan.catalogue import Catalogue, QueryStatement, StreamDefinition
from transom.planner import slide_join
from transom.planner.plan import plan
from transom.planner.slide_join import TACTICS
from transom.runtimes.reference.evaluate import evaluate
from transom.runtimes.reference.history import History, difference

EXAMPLES = examples(by_day=8, at_night=400)
BUDGETS = (500, 1_500, 4_000, 20_000)
START = 1_700_000_000 * SECOND
ARRIVING = "CREATE STREAM {name} (k INTEGER, x INTEGER) WITH (time = 'arrival');"
TIMED = "CREATE STREAM {name} (ts TIMESTAMP INVISIBLE, k INTEGER, x INTEGER, WATERMARK FOR ts AS ts);"


@dataclass
class BusyClock:
    """Whoever looks at it has worked for a while."""

    now: int
    takes: int

    def __call__(self) -> int:
        self.now += self.takes
        return self.now


def bound(declared: str, names: str, query: str) -> tuple[Node, Catalogue]:
    catalogue = Catalogue()
    declarations = "".join(declared.format(name=name) for name in names)
    statement = parse_statements(f"{declarations} {query}", catalogue)[-1]
    assert isinstance(statement, QueryStatement)
    return statement.query, catalogue


def query_of(random: Random) -> tuple[str, str]:
    names = "abc"[: random.choice([2, 2, 3])]
    slide = random.choice([1, 2])
    windows = [f"[RANGE {slide * random.choice([2, 3, 4])} SECONDS SLIDE {slide} SECONDS]" for _ in names]
    placed = [f"{name} {window}" for name, window in zip(names, windows, strict=True)]
    equal = " AND ".join(f"a.k = {name}.k" for name in names[1:])
    shown = ", ".join(f"{name}.x AS {name}x" for name in names)
    select = f"SELECT {shown} FROM {', '.join(placed)} WHERE {equal}"
    slides = f"RSTREAM({select})"
    kind = Random(f"{slides} kind").random()
    if kind < 0.15:
        calls = "COUNT(*) AS n, SUM(ax) AS s, MIN(CAST(bx AS VARCHAR)) AS low"
        return names, f"RSTREAM(SELECT {calls} FROM ({select}) AS v);"
    if kind < 0.4:
        unite = "UNION" if kind < 0.2 else "UNION ALL"
        other = f"SELECT p.x AS ax, q.x AS bx FROM {placed[-1]} AS p, {placed[0]} AS q WHERE p.k = q.k"
        united = f"RSTREAM(SELECT ax, bx FROM ({select}) AS v {unite} {other})"
        return names, f"{united};" if unite == "UNION" else above(united)
    if len(names) == 3 and Random(f"{slides} below").random() < 0.5:
        below = f"SELECT a.k, a.x AS ax, b.x AS bx FROM {placed[0]}, {placed[1]} WHERE a.k = b.k"
        slides = f"RSTREAM(SELECT v.ax, v.bx, c.x AS cx FROM ({below}) AS v, {placed[2]} WHERE v.k = c.k)"
    return names, above(slides)


def above(slides: str) -> str:
    """The slides, or what another query makes of them; which, is decided by their text."""
    change = Random(slides).choice(["", "", "ISTREAM", "RSTREAM"])
    if Random(f"{slides} grouped").random() < 0.4:
        change, calls = change or "RSTREAM", "COUNT(*) AS n, SUM(ax) AS s, MAX(ax) AS m"
        calls += ", MIN(CAST(ax AS VARCHAR)) AS low"
        return f"{change}(SELECT bx, {calls} FROM ({slides}) [NOW] WHERE ax <> 3 GROUP BY bx HAVING SUM(ax) <> 4);"
    return f"{change}(SELECT ax + bx AS x, bx FROM ({slides}) [NOW] WHERE ax <> 3);" if change else f"{slides};"


class Trial:
    """One run of a query, whose rows are noted with the times that they were stamped with."""

    def __init__(
        self, random: Random, names: str, query: str, tactic: str, memory: int, budget: RunBudget | None = None
    ) -> None:
        self.random = random
        self.names = names
        self.text = query
        self.query, self.catalogue = bound(ARRIVING, names, query)
        self.catalogue.options.update(slide_join=tactic, memory=memory)
        self.budget = budget
        self.operator = plan(self.query, self.catalogue)
        self.clock = BusyClock(START, random.choice([1_000, 100_000, 300_000, 700_000]))
        self.reported = EmittedSlides()
        self.stamped: dict[str, list[tuple[Any, ...]]] = {name: [] for name in names}
        self.open_ones = ExitStack()
        self.pipeline = self._made()

    def _made(self) -> Pipeline:
        pipeline = self.open_ones.enter_context(closing(Pipeline(self.operator, self.catalogue, budget=self.budget)))
        pipeline.clock = self.clock
        return pipeline

    def run(self) -> None:
        with self.open_ones:
            for _ in range(self.random.randint(10, 30)):
                self.go_on()
                if self.random.random() < 0.1:
                    self.restart()
            self.finish()

    def go_on(self) -> None:
        """Rows of one stream, and some time in which nothing comes."""
        self.push(self.random.choice(self.names), self.random.choice([1, 1, 3, 12]))
        self.clock.now += self.random.choice([0, 0, 200_000, 1_500_000])
        for _ in range(self.random.choice([0, 0, 1, 5])):
            output = self.pipeline.idle()
            if output is not None:
                self.reported.add(output.rows)

    def finish(self) -> None:
        for name in self.names:
            self.pipeline.end(name)
        self.advance()

    def check(self) -> History:
        """What was called complete equals the reference, and nothing is left."""
        expected = evaluate(*bound(TIMED, self.names, self.text), self.stamped)
        wrong = difference(expected, self.reported.history())
        assert wrong is None, f"{self.text}\n(first: reference, second: the engine)\n{wrong}"
        assert not self.reported.unfinished
        state = slide_state(self.pipeline)
        assert not state.works and not state.windows and not state.stored
        report = state.report
        assert report.put_off == len(self.reported.voided) == report.completed_later
        assert report.complete == len(self.reported.complete)
        return expected

    def push(self, name: str, count: int) -> None:
        definition = self.catalogue.relations[name]
        assert isinstance(definition, StreamDefinition)
        rows = [(None, self.random.choice([1, 1, 2, None]), self.random.randint(0, 9)) for _ in range(count)]
        order = [column.name for column in definition.columns]
        time = order.index(definition.time.column if definition.time else "")
        placed = [(*row[1 : time + 1], row[0], *row[time + 1 :]) for row in rows]
        self.pipeline.push(name, batch_of(definition.columns, placed), self.clock.now)
        last = self.pipeline.state.gates.clock
        for i, (_, *values) in enumerate(rows):
            self.stamped[name].append((to_datetime(last - (count - 1 - i)), *values))
        self.advance()

    def advance(self) -> None:
        output, _ = self.pipeline.advance()
        if output is not None:
            self.reported.add(output.rows)

    def restart(self) -> None:
        saved = self.pipeline.snapshot()
        self.open_ones.close()
        self.pipeline = self._made()
        self.pipeline.restore(saved)


def test_what_is_called_complete_equals_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slide_join, "LEAST_MEMORY", 1)
    seen: Counter[str] = Counter()

    @over_seeds("put off", EXAMPLES, seen)
    def check(seed: int) -> None:
        random = Random(f"put off {seed}")
        names, query = query_of(random)
        trial = Trial(random, names, query, random.choice(TACTICS), random.choice(BUDGETS))
        monkeypatch.setattr(labour, "UNIT_ROWS", random.choice([1, 4, 1 << 16]))
        trial.run()
        expected = trial.check()
        report = slide_state(trial.pipeline).report
        seen["put off"] += bool(report.put_off)
        seen["through another query"] += "[NOW]" in query
        seen["above a join"] += "AS v" in query
        seen["groups put off"] += "GROUP BY" in query and bool(report.put_off)
        seen["one row put off"] += "GROUP BY" not in query and "COUNT" in query and bool(report.put_off)
        seen["united slides put off"] += "UNION" in query and bool(report.put_off)
        seen["rows that were void"] += report.put_off
        seen["lively"] += len(expected.instants) > 3

    check()
    assert seen["through another query"] and seen["above a join"], seen
    assert seen["groups put off"] and seen["one row put off"] and seen["united slides put off"], seen
    assert seen["put off"] >= EXAMPLES // 8 and seen["lively"] >= EXAMPLES // 5, seen
