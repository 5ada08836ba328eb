"""Aggregates over joins: the tactic, and the operators that run it.

| tactic | takes | keeps |
| --- | --- | --- |
| factorised | inputs that are all on one set of keys, no other predicate | the rows alive, totals per key |
| ic | two inputs, any predicate; COUNT, SUM, AVG | the rows alive |
| tc | two inputs, or more on one key; any predicate; ends that are known at the match | the rows alive, their credits |
| pc | anything: the join, and the aggregate of its rows | the rows of the join that are alive |

Unless one is asked for, the first that can is taken; but where a row is known to have few matches, the join is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from transom.core.errors import RefusedError
from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.operator import ANY, SINGLE, Operator, Partitioning, Tactic, column
from transom.plan.algebra import Aggregate, Filter, Project, Relation, a_relation
from transom.plan.expression import ColumnRef, Expression, columns_of, conjunction, substitute
from transom.planner.joinagg_shape import Shape, may_fail
from transom.planner.key_path import same_key

TACTICS: Final = ("factorised", "ic", "tc", "pc")

FEW_MATCHES: Final = 8.0
"""Up to so many join rows a row, pc takes no longer than factorised, which takes as long whatever the matches."""

Kept = Callable[[Operator], Operator]
"""The very operator that an equal one was before."""


@dataclass(frozen=True)
class Choice:
    """A tactic of `TACTICS`, and those that are not taken, with the reasons."""

    name: str
    refused: tuple[tuple[str, str], ...]


def choose(
    shape: Shape,
    inputs: tuple[Operator, ...],
    negative: bool,
    forced: str,
    decided: str | None = None,
    matches: Callable[[], float | None] = lambda: None,
) -> Choice:
    """The first tactic that says yes; a forced one that says no is refused with its reason.

    `matches` estimates the join rows that a row makes, None where nobody knows; it is asked if it matters. What is
    `decided` already is done so, whatever it says now.
    """
    everywhere = _reason_for_pc(shape, negative)
    reasons = {
        "factorised": everywhere or _not_factorised(shape),
        "ic": everywhere or _not_ic(shape),
        "tc": everywhere or _not_tc(shape, inputs),
        "pc": None,
    }
    name = next(tactic for tactic in TACTICS if reasons[tactic] is None) if forced == "auto" else forced
    less = f"{name} does it with less"
    if forced == "auto" and name == "factorised":
        if decided in ("factorised", "pc"):
            name, less = decided, f"the checkpoint was written with {decided}"
        elif (found := matches()) is not None:
            name = "pc" if found <= FEW_MATCHES else "factorised"
            less = f"{name} does it with less: {found:.2g} matches a row estimated, pc is faster up to {FEW_MATCHES:g}"
    reason = reasons[name]
    if reason is not None:
        possible = [tactic for tactic in TACTICS if reasons[tactic] is None]
        raise RefusedError(
            f"the join-aggregate tactic '{forced}' cannot run this query: {reason}",
            remedy=f"SET joinagg = 'auto', or one of: {', '.join(possible)}",
        )
    refused = [(tactic, why) for tactic, why in reasons.items() if why is not None]
    refused += [
        (tactic, less if forced == "auto" else "not asked for")
        for tactic in TACTICS
        if reasons[tactic] is None and tactic != name
    ]
    return Choice(name, tuple(refused))


def _reason_for_pc(shape: Shape, negative: bool) -> str | None:
    """Why only the pipeline can do it."""
    if negative:
        return "lifetimes are told by negative tuples"
    for call in shape.calls:
        if call.distinct and call.function not in ("min", "max"):
            return f"{call} needs the values of the join one by one"
    wanted = (*shape.keys, *(call.argument for call in shape.calls if call.argument is not None))
    for expression in wanted:
        if shape.own(expression) is None:
            return f"{expression} reads columns of several inputs"
        if may_fail(expression):
            return f"{expression} can fail, and must not for rows that match nothing"
    return None


def _not_factorised(shape: Shape) -> str | None:
    if not shape.classes:
        return "there is no equality between the inputs"
    if not shape.join_keys:
        return "the inputs are not all joined on one key"
    if shape.residual:
        return f"{shape.residual[0]} is a predicate between inputs that is not an equality of all of them"
    return None


def _not_tc(shape: Shape, inputs: tuple[Operator, ...]) -> str | None:
    if len(shape.relations) > 2 and not shape.join_keys:
        return "the inputs are not all joined on one key"
    for i, operator in enumerate(inputs):
        if operator.open_ends:
            return f"rows of input {i + 1} may match before it is known when they end"
    return None


def _not_ic(shape: Shape) -> str | None:
    if len(shape.relations) > 2:
        return f"there are {len(shape.relations)} inputs"
    for call in shape.calls:
        if call.function in ("min", "max"):
            return f"{call} cannot be told from what it was and what leaves"
    return None


def operators(node: Aggregate, shape: Shape, inputs: tuple[Operator, ...], choice: Choice, kept: Kept) -> Operator:
    """The join-aggregate over the inputs, and a merge of its partial results where groups are spread."""
    layout = _Layout(shape, choice.name)
    below = tuple(kept(layout.narrowed(i, operator, kept)) for i, operator in enumerate(inputs))
    keys = tuple(layout.place(key) for key in shape.keys)
    calls = tuple(
        call if call.argument is None else replace(call, argument=layout.place(call.argument)) for call in shape.calls
    )
    same_keys = tuple(layout.join_key(key) for key in shape.keys)
    grouped = [n for n in range(len(layout.join_keys)) if n in same_keys]
    partial = bool(layout.join_keys) and not grouped
    joined = JoinAggregate(
        tuple(a_relation(operator.node) for operator in below),
        tuple(tuple(layout.key_column(i, n) for n in range(len(layout.join_keys))) for i in range(len(below))),
        layout.residual,
        keys,
        calls,
        node.names,
        same_keys,
        partial,
    )
    # Rows that agree on some of the join keys meet as well; so groups by some of them need no merge.
    spread = grouped or range(len(layout.join_keys))
    needs = tuple(
        Partitioning("keys", tuple(column(operator.schema, joined.join_keys[i][n]) for n in spread))
        if layout.join_keys
        else SINGLE
        for i, operator in enumerate(below)
    )
    tactic = Tactic(choice.name, _keeps(choice.name, shape), _costs(choice.name, shape), choice.refused)
    made = Operator(joined, tactic, below, None, needs, open_ends=True)
    if not partial:
        return made
    made = kept(made)
    merged = MergeAggregate(joined, len(keys), calls, node.names)
    by = tuple(column(made.schema, n) for n in range(len(keys)))
    merge = Tactic("merge", "the partial results alive, totals per group", "O(1) a partial result")
    return Operator(merged, merge, (made,), None, (Partitioning("keys", by) if by else SINGLE,), open_ends=True)


class _Layout:
    """Where keys, arguments and what the residual reads are among the columns of the narrowed inputs."""

    def __init__(self, shape: Shape, tactic: str) -> None:
        self.shape = shape
        self.join_keys = shape.join_keys
        self.columns: list[list[Expression]] = [[] for _ in shape.relations]
        for n in range(len(self.join_keys)):
            for i in range(len(shape.relations)):
                self.key_column(i, n)
        for expression in (*shape.keys, *(call.argument for call in shape.calls if call.argument is not None)):
            self._add(expression)
        whole = conjunction(shape.residual)
        own = tuple(
            ref
            for relation, first in zip(shape.relations, shape.bounds, strict=False)
            for ref in _refs(relation, first)
        )
        for at in sorted(columns_of(whole)) if whole is not None else ():
            self._add(own[at])
        for i, relation in enumerate(shape.relations):
            if not self.columns[i]:
                self.columns[i].append(column(relation.schema, 0))
        self.residual = None
        if whole is not None:
            read = columns_of(whole)
            self.residual = substitute(
                whole, tuple(self.place(ref) if at in read else ref for at, ref in enumerate(own))
            )

    def _add(self, expression: Expression) -> tuple[int, int]:
        found = self.shape.own(expression)
        assert found is not None
        i, local = found
        if local not in self.columns[i]:
            self.columns[i].append(local)
        return i, self.columns[i].index(local)

    def key_column(self, i: int, n: int) -> int:
        """The column of join key n on input i."""
        local = next(expression for at, expression in self.join_keys[n] if at == i)
        if local not in self.columns[i]:
            self.columns[i].append(local)
        return self.columns[i].index(local)

    def join_key(self, key: Expression) -> int | None:
        """Which join key an expression to group by is."""
        found = self.shape.own(key)
        assert found is not None
        for n, known in enumerate(self.join_keys):
            if any(i == found[0] and same_key(expression, found[1]) for i, expression in known):
                return n
        return None

    def place(self, expression: Expression) -> ColumnRef:
        """The column that it is, among those of all narrowed inputs side by side."""
        i, at = self._add(expression)
        first = sum(len(columns) for columns in self.columns[:i])
        name = expression.name if isinstance(expression, ColumnRef) else str(expression)
        return ColumnRef(first + at, expression.type, name)

    def narrowed(self, i: int, operator: Operator, kept: Kept) -> Operator:
        """The input with exactly its columns; where a join key is several of its expressions, those must be equal."""
        same = conjunction(tuple(self.shape.same_on_one_input(i)))
        if same is not None:
            node = Filter(a_relation(operator.node), same)
            operator = kept(_passing(node, "filter", operator))
        schema = operator.schema
        wanted = self.columns[i]
        if wanted == [column(schema, at) for at in range(len(schema))]:
            return operator
        names = tuple(e.name if isinstance(e, ColumnRef) else str(e) for e in wanted)
        return _passing(Project(a_relation(operator.node), tuple(wanted), names), "project", operator)


def _passing(node: Relation, name: str, below: Operator) -> Operator:
    tactic = Tactic(name, "nothing")
    return Operator(node, tactic, (below,), None, (ANY,), below.ends_grow, open_ends=below.open_ends)


def _refs(relation: Relation, first: int) -> list[ColumnRef]:
    return [ColumnRef(first + i, known.type, known.name) for i, known in enumerate(relation.schema)]


def _keeps(tactic: str, shape: Shape) -> str:
    rows = "of the rows alive of all inputs the keys and 16 bytes per argument"
    heaps = any(call.function in ("min", "max") for call in shape.calls)
    return {
        "factorised": f"{rows}; totals per key, input and group{', a heap entry per key and group' * heaps}",
        "tc": f"{rows}, and their credits; totals per group",
        "ic": f"{rows}; totals per group",
    }[tactic]


def _costs(tactic: str, shape: Shape) -> str:
    heaps = any(call.function in ("min", "max") for call in shape.calls)
    once = "O(log rows alive)" if heaps else "O(1)"
    joined = [member for known in shape.join_keys for member in known]
    times = " for each group under its key" if any(shape.own(key) not in joined for key in shape.keys) else ""
    return {
        "factorised": f"{once} a row{times}, whatever its matches",
        "tc": f"{'O(matches log rows alive)' if heaps else 'O(1 + matches)'} a row when it comes, O(1) when it ends",
        "ic": "O(1 + matches) a row when it comes and when it ends",
    }[tactic]
