"""A formula gives what Arrow gives of the same predicate, also where floats are odd; the rest is left to Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from transom.core.delta import NO_OPEN_ID, Delta
from transom.core.schema import BIGINT, DOUBLE
from transom.kernels import scalar
from transom.kernels.formula import BLOCK, CONSTANT, formula, passing
from transom.kernels.mould import ColumnAddresses
from transom.kernels.multiway import predicate_check
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.input_rows import input_rows
from transom.kernels.multiway.newcomers import newcomers
from transom.kernels.multiway.predicate_check import PredicateCheck
from transom.plan.expression import ColumnRef, Expression, Literal
from transom.plan.functions import resolve

ROWS = 60
ODD = [0.0, -0.0, 1.0, -1.0, 0.5, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan")]
A, B, C, D = (ColumnRef(at, DOUBLE, name) for at, name in enumerate("abcd"))
HALF = Literal(0.5, DOUBLE)
N = ColumnRef(0, BIGINT, "n")

VALUES: dict[str, Expression] = {
    "a": A,
    "a - c": resolve("-", (A, C)),
    "abs(a - c)": resolve("abs", (resolve("-", (A, C)),)),
    "-(a * c) + b": resolve("+", (resolve("negate", (resolve("*", (A, C)),)), B)),
    "a * (b - c * d)": resolve("*", (A, resolve("-", (B, resolve("*", (C, D)))))),
}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def requested(
    predicate: Expression, columns: Sequence[pa.Array], count: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[int], list[int], list[int], bool]:
    """What passes by Arrow over all columns, of tuples, and of pairs; and whether a formula was asked."""
    graph = JoinGraph(((columns[0].type, DOUBLE),) * 2, ((None,), (None,)), residual=(predicate,))
    inputs = [input_rows(graph, i) for i in range(2)]
    for i, own in enumerate(inputs):
        values = pa.record_batch(columns[2 * i : 2 * i + 2], names=["x", "y"])
        ta, te = np.zeros(ROWS, dtype=np.int64), np.full(ROWS, 9)
        own.insert(newcomers(graph, i, Delta(values, ta, te, np.full(ROWS, NO_OPEN_ID), frontier=5)))
    random = np.random.default_rng(4)
    tuples = random.integers(0, ROWS, (count, 4))
    calls: list[int] = []
    monkeypatch.setattr(predicate_check, "passing", lambda *of: calls.append(1) or passing(*of))  # type: ignore[func-returns-value]
    ask = PredicateCheck(graph, inputs, ColumnAddresses([own.rows for own in inputs], [own.mask for own in inputs]))
    check = graph.check([predicate])
    of, members = np.sort(random.integers(0, count, count)), random.integers(0, ROWS, (count, 3))
    found = [
        np.arange(count) if kept is None else kept
        for kept in (ask.tuples(check, tuples), ask.pairs(check, tuples, of, members, 1))
    ]
    for at, sides in enumerate(((tuples[:, 0], tuples[:, 1]), (tuples[of, 0], members[:, 0]))):
        taken = [column.take(pa.array(sides[n // 2])) for n, column in enumerate(columns)]
        wanted = scalar.keep(predicate, pa.record_batch(taken, names=list("abcd")))
        assert found[at].tolist() == (list(range(count)) if wanted is None else wanted.to_pylist())
    return found[0].tolist(), found[1].tolist(), calls, check.formula is not None


def columns_of(random: np.random.Generator) -> list[pa.Array]:
    return [pa.array(random.choice(ODD, ROWS)) for _ in range(4)]


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("name", VALUES)
def test_it_gives_what_arrow_gives(name: str, comparison: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(np.random.default_rng(7))
    for right in (D, HALF):
        *_, calls, is_formula = requested(
            resolve(comparison, (VALUES[name], right)), columns, 2 * BLOCK + 7, monkeypatch
        )
        assert is_formula and calls


@pytest.mark.parametrize("count", [1, BLOCK, 3 * BLOCK])
def test_comparisons_are_asked_of_what_those_before_left(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(8)
    columns = [pa.array(random.integers(0, 9, ROWS) / 4) for _ in range(4)]
    parts = [
        resolve("<", (A, C)),
        resolve("<=", (resolve("abs", (resolve("-", (B, D)),)), HALF)),
        resolve("<>", (A, D)),
    ]
    tuples, _, calls, _ = requested(resolve("and", tuple(parts)), columns, count, monkeypatch)
    assert calls and (count == 1 or 0 < len(tuples) < count)


def test_columns_that_had_a_null_are_for_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(np.random.default_rng(9))
    columns[2] = pa.array([None, *columns[2].to_pylist()[1:]], DOUBLE)
    *_, calls, is_formula = requested(resolve("<", (A, C)), columns, 100, monkeypatch)
    assert is_formula and not calls
    *_, calls, _ = requested(resolve("<", (A, D)), columns, 100, monkeypatch)
    assert calls


@pytest.mark.parametrize(
    "predicate",
    [
        resolve("<", (N, ColumnRef(2, BIGINT, "m"))),
        resolve("or", (resolve("<", (B, D)), resolve(">", (B, HALF)))),
        resolve("<", (resolve("/", (B, D)), HALF)),
        resolve("<", (B, Literal(None, DOUBLE))),
        resolve("is_null", (B,)),
    ],
    ids=str,
)
def test_everything_else_is_for_arrow(predicate: Expression, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(10)
    whole, odd = (pa.array(random.integers(0, 9, ROWS)) for _ in range(2)), columns_of(random)
    first, second = whole
    *_, calls, is_formula = requested(predicate, [first, odd[1], second, odd[3]], 200, monkeypatch)
    assert not is_formula and not calls


def test_constants_of_comparisons_lie_one_behind_the_other() -> None:
    """Each comparison is written by itself, once for all predicates that it is in; constant sums are one constant."""
    low = resolve(">", (A, HALF))
    high = resolve("<", (resolve("*", (B, Literal(3.0, DOUBLE))), resolve("+", (HALF, Literal(1.0, DOUBLE)))))
    both = formula(resolve("and", (low, high)))
    assert both is not None
    constants = [both.constants[at] for operation, at in both.program.tolist() if operation == CONSTANT]
    assert constants == [0.5, 3.0, 1.5] and both.columns == 0b11
