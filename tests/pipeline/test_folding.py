"""A projection that only picks columns of a join is made by the join; everybody else sees no difference."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.queries import Running
from transom.core.time import SECOND
from transom.kernels.select.select import ProjectKernel
from transom.pipeline import part
from transom.pipeline.part import Part

JOIN = "FROM a [RANGE 9 SECOND], b [RANGE 9 SECOND], a [RANGE 9 SECOND] AS c WHERE a.k = b.k AND a.k = c.k"
PICKED = f"SELECT b.k AS y, a.k AS x, b.k AS z {JOIN}"
COMPUTED = f"SELECT b.k + 1 AS y, a.k AS x {JOIN}"


def answer(running: Running) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for second, name in enumerate("abbabaab", 1):
        running.push(name, (second % 2, None), (1, None), now=second * SECOND)
        found += running.advance()
    return found + running.end("a", "b")


def kernels(running: Running) -> dict[str, tuple[Any, ...]]:
    of_part: Part = running.pipeline.part
    return {operator.kind: of_part._kernels[i] for i, operator in enumerate(of_part.operators)}


@pytest.mark.parametrize("emit", ["lifetimes", "changes", "latest"])
@pytest.mark.parametrize("text", [PICKED, COMPUTED, f"ISTREAM({PICKED})"])
def test_the_answer_is_the_same(text: str, emit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = "SET multiway = 'mjoin';"
    folded = Running(text, emit, options)
    with monkeypatch.context() as patch:
        patch.setattr(part, "fold_projections", lambda operators, kernels, given: None)
        plain = Running(text, emit, options)
    assert (kernels(folded)["Project"] == ()) == ("+ 1" not in text)
    assert isinstance(kernels(plain)["Project"][0], ProjectKernel)
    reported = answer(folded)
    assert reported == answer(plain) and len(reported) > 20
    mine, others = (one.pipeline.state.part.counters for one in (folded, plain))
    assert [(c.rows_in, c.rows_out, c.ends_out) for c in mine] == [(c.rows_in, c.rows_out, c.ends_out) for c in others]


def test_a_folded_query_goes_on_after_a_restart() -> None:
    options = "SET multiway = 'mjoin';"
    straight, broken = Running(PICKED, "lifetimes", options), Running(PICKED, "lifetimes", options)
    found: list[list[tuple[Any, ...]]] = []
    for running in (straight, broken):
        rows: list[tuple[Any, ...]] = []
        for second in range(1, 20):
            running.push("ab"[second % 2], (1, None), now=second * SECOND)
            rows += running.advance()
            if running is broken:
                running.restart()
        found.append(rows)
    assert found[0] == found[1] and found[0]
