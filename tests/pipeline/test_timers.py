"""An operator that is left alone in a step would have done nothing in it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.pipeline.queries import Running
from transom.core.delta import Delta
from transom.core.time import SECOND
from transom.kernels.kernel import Step
from transom.kernels.window.range import RangeWindow
from transom.pipeline.memory import state_rows

RANGES = "s [RANGE 3 SECONDS], t [RANGE 2 SECONDS], f [RANGE 5 SECONDS]"
QUERIES = [
    f"SELECT s.k FROM {RANGES} WHERE s.k = t.k AND t.k = f.k",
    "SELECT s.k FROM s [ROWS 2], t [ROWS 3 RANGE 4 SECONDS], f [RANGE 5 SECONDS] WHERE s.k = t.k AND t.k = f.k",
    "SELECT s.k FROM s [PARTITION BY k ROWS 1 RANGE 2 SECONDS], t [RANGE 4 SECONDS SLIDE 2 SECONDS] WHERE s.k = t.k",
    "SELECT s.k FROM s [ROWS 3 SLIDE 2], r WHERE s.k = r.k",
    "SELECT COUNT(*) AS n, MAX(k) AS m FROM s [RANGE 2 SECONDS]",
    "SELECT k, COUNT(*) AS n FROM (SELECT k FROM s [ROWS 2 RANGE 3 SECONDS] UNION ALL SELECT k FROM t [NOW]) "
    "GROUP BY k",
    "SELECT k FROM s [RANGE 3 SECONDS] EXCEPT ALL SELECT k FROM t [ROWS 1]",
    "SELECT DISTINCT k + 1 AS k FROM s [RANGE 4 SECONDS] WHERE k > 0",
    "SELECT label FROM s [RANGE 2 SECONDS], names WHERE s.k = names.k",
    "RSTREAM(SELECT k FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS])",
    "SELECT n, t.k FROM (SELECT COUNT(*) AS n FROM s [RANGE 2 SECONDS]) AS x, t [NOW]",
    "DSTREAM(SELECT s.k FROM s [RANGE 2 SECONDS], t [ROWS 1] WHERE s.k = t.k)",
    "SELECT COUNT(*) AS n FROM ISTREAM(SELECT k FROM s [ROWS 1]) [RANGE 2 SECONDS], t [RANGE 1 SECOND]",
]


def everybody_runs(running: Running) -> Running:
    timers = running.pipeline.part._timers
    timers._timed_kernels = [None for _ in timers._timed_kernels]
    return running


def inputs_of(running: Running) -> list[str]:
    return list(running.pipeline.inputs)


def rows_to_push(running: Running, seed: int) -> list[tuple[str, tuple[Any, ...]]]:
    """Single rows in order of time, mostly of one input for a while."""
    chance = random.Random(seed)
    found: list[tuple[str, tuple[Any, ...]]] = []
    name = inputs_of(running)[0]
    for i in range(40):
        if chance.random() < 0.4:
            name = chance.choice(inputs_of(running))
        k, at = chance.randrange(3), i / 2 + 5 * (i > 25)
        found.append((name, (at, "+", k) if name == "r" else (at, k)))
    return found


EMITS = ("changes", "lifetimes", "latest")
NEGATIVE = "SET lifetimes = 'negative';"
BY_NIGHT = ((), (pytest.mark.nightly,))
CASES = [pytest.param(text, EMITS[i % 3], "", marks=BY_NIGHT[i % 2 == 0]) for i, text in enumerate(QUERIES)]
CASES += [pytest.param(text, EMITS[(i + 1) % 3], NEGATIVE, marks=BY_NIGHT[i % 2]) for i, text in enumerate(QUERIES)]
"""By day each query with or without lifetimes, in turn."""


@pytest.mark.parametrize(("text", "emit", "options"), CASES)
def test_leaving_operators_alone_changes_nothing(text: str, emit: str, options: str) -> None:
    pair = Running(text, emit, options), everybody_runs(Running(text, emit, options))
    for step, (name, row) in enumerate(rows_to_push(pair[0], len(text))):
        for running in pair:
            if step == 0 and running.pipeline.statics:
                running.push("names", (0, "none"), (1, "one"))
            for other in inputs_of(running):  # the others are silent, and time goes on
                running.push(other, *([row] if other == name else []))
            for other in inputs_of(running):
                running.pipeline.state.gates.inputs[other].raised = round((row[0] - 0.5) * SECOND)
        assert pair[0].advance() == pair[1].advance()
        assert _kept(pair[0]) == _kept(pair[1])
        if step == 20:
            for running in pair:
                running.restart()
            everybody_runs(pair[1])
    assert pair[0].end(*inputs_of(pair[0])) == pair[1].end(*inputs_of(pair[1]))


def _kept(running: Running) -> list[int]:
    return [state_rows(memories) for memories in running.pipeline.state.part.operators]


def test_only_the_operators_that_something_comes_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    windows: list[int] = []
    step = RangeWindow.step

    def noted(self: RangeWindow, state: None, inputs: Any, at: Step) -> Delta:
        windows.append(self.length)
        return step(self, state, inputs, at)

    monkeypatch.setattr(RangeWindow, "step", noted)
    running = Running("SELECT a.k FROM a [RANGE 3 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k", "lifetimes")
    running.push("a", (1, None), now=SECOND)
    running.advance()
    assert sorted(windows) == [2 * SECOND, 3 * SECOND], "nobody is left alone who has never run"
    windows.clear()
    running.push("b", (1, None), now=2 * SECOND)
    assert running.advance() == [(1, 2.0, 4.0)]
    running.push("b", (2, None), now=9 * SECOND)
    assert running.advance() == []
    assert windows == [2 * SECOND] * 2
    assert sum(_kept(running)) == 1, "what ended meanwhile is not kept"
