"""Aggregates over joins: the tactic, and the operators that run it.

Those that do without the join are in `kernels/joinagg/tactic.py`; pc takes anything: it is the join, and the aggregate
of its rows.

Unless one is forced, the first that can is taken; but where a row is known to have few matches, the join is. Where the
tactic can change while the query runs, and may (SET adapt), that is left to what comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from transom.core.errors import UnsupportedError
from transom.kernels.all_tactics import tactics_of
from transom.kernels.joinagg.node import JoinAggregate, MergeAggregate
from transom.kernels.joinagg.shape import Shape, may_fail
from transom.kernels.joinagg.tactic import AdaptiveTactic, JoinAggregateTactic, MergeTactic
from transom.kernels.operator import ANY, SINGLE, Operator, Partitioning, column
from transom.kernels.select.tactic import FilterTactic, ProjectTactic
from transom.plan.algebra import Aggregate, Filter, Project, Relation, a_relation
from transom.plan.expression import ColumnRef, Expression, columns_of, conjunction, substitute, walk
from transom.plan.python_function import PythonCall
from transom.plan.same_key import same_key
from transom.planner.joinagg_calls import VARIANCES, derived, squares_fit

PIPELINE: Final = "pc"
"""The tactic that is none of its own: the join, and the aggregate of its rows."""

TACTICS: Final = (*(tactic.name for tactic in tactics_of(JoinAggregate)), PIPELINE)

ADAPTIVE: Final = AdaptiveTactic.name

FEW_MATCHES: Final = 8.0
"""Up to so many join rows a row, pc takes no longer than factorised, which takes as long whatever the matches."""

Kept = Callable[[Operator], Operator]
"""The very operator that an equal one was before."""


@dataclass(frozen=True)
class JoinAggregateChoice:
    """A tactic of `TACTICS`, and those that are not taken, with the reasons."""

    name: str
    not_taken: tuple[tuple[str, str], ...]
    adapt: str = "on"


def choose(
    shape: Shape,
    inputs: tuple[Operator, ...],
    negative: bool,
    forced: str,
    decided: str | None = None,
    matches: Callable[[], float | None] = lambda: None,
    adapt: str = "on",
) -> JoinAggregateChoice:
    """The first tactic that says yes; a forced one that says no is an error with its reason.

    `matches` estimates the join rows that a row makes, None where nobody knows; it is asked if it matters. What is
    `decided` already is done so, whatever it says now.
    """
    everywhere = _reason_for_pc(shape, negative)
    reasons: dict[str, str | None] = {
        tactic.name: everywhere or tactic.unsupported(shape, inputs) for tactic in _tactics()
    }
    if adapt == "off":
        reasons[ADAPTIVE] = reasons[ADAPTIVE] or "SET adapt is 'off'"
    reasons[PIPELINE] = None
    possible = [tactic for tactic, why in reasons.items() if why is None]
    name = possible[0] if forced == "auto" else forced
    less = f"{name} does it with less"
    if forced == "auto" and ADAPTIVE in possible and decided not in ("factorised", "pc"):
        name, less = ADAPTIVE, f"{ADAPTIVE} changes to what is better for what comes"
    elif forced == "auto" and name == "factorised":
        if decided in ("factorised", "pc"):
            name, less = decided, f"the checkpoint was written with {decided}"
        elif (count := matches()) is not None:
            name = "pc" if count <= FEW_MATCHES else "factorised"
            less = f"{name} does it with less: {count:.2g} matches a row estimated, pc is faster up to {FEW_MATCHES:g}"
    reason = reasons[name]
    if reason is not None:
        raise UnsupportedError(
            f"the join-aggregate tactic '{forced}' cannot run this query: {reason}",
            remedy=f"SET joinagg = 'auto', or one of: {', '.join(possible)}",
        )
    not_taken = [(tactic, why) for tactic, why in reasons.items() if why is not None]
    not_taken += [(tactic, less if forced == "auto" else "not requested") for tactic in possible if tactic != name]
    return JoinAggregateChoice(name, tuple(not_taken), adapt)


def _tactics() -> Iterator[type[JoinAggregateTactic]]:
    """Those that do without the join."""
    return (tactic for tactic in tactics_of(JoinAggregate) if issubclass(tactic, JoinAggregateTactic))


def _reason_for_pc(shape: Shape, negative: bool) -> str | None:
    """Why only the pipeline can do it."""
    if negative:
        return "lifetimes are sent as negative tuples"
    for call in shape.calls:
        if call.distinct and call.function not in ("min", "max"):
            return f"{call} needs the values of the join one by one"
        if call.function in VARIANCES and not squares_fit(call):
            return f"{call} is computed from the rows of the join: squares of such values are not summed up exactly"
        if call.function not in ("count", "sum", "avg", "min", "max", *VARIANCES):
            return f"{call} is computed from the rows of the join"
        for argument in call.expressions:
            if any(isinstance(part, PythonCall) for part in walk(argument)):
                return f"{argument} is computed in Python, for rows that match alone"
    for key in shape.keys:
        if shape.own(key) is None:
            return f"{key} reads columns of several inputs"
        if may_fail(key):
            return f"{key} can fail, and must not for rows that match nothing"
    return None


def operators(
    node: Aggregate, shape: Shape, inputs: tuple[Operator, ...], choice: JoinAggregateChoice, kept: Kept
) -> Operator:
    """The join-aggregate over the inputs, and a merge of its partial results where groups are spread.

    Where calls are made of others a projection is above.
    """
    made_of = derived(shape, node)
    made = _computed(made_of.shape, made_of.names, inputs, choice, kept)
    if not made_of.changed:
        return made
    made = kept(made)
    return _passing(Project(a_relation(made.node), made_of.values, node.names), ProjectTactic, made)


def _computed(
    shape: Shape, names: tuple[str, ...], inputs: tuple[Operator, ...], choice: JoinAggregateChoice, kept: Kept
) -> Operator:
    layout = _Layout(shape)
    below = tuple(kept(layout.narrowed(i, operator, kept)) for i, operator in enumerate(inputs))
    keys = tuple(layout.index(key) for key in shape.keys)
    calls = tuple(
        call if call.argument is None else replace(call, argument=layout.argument(call.argument))
        for call in shape.calls
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
        names,
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
    (kind,) = (each for each in _tactics() if each.name == choice.name)
    chosen = kind.chosen(shape, choice.not_taken)
    if isinstance(chosen, AdaptiveTactic):
        chosen = replace(chosen, watch=choice.adapt)
    written = (*shape.predicates, *shape.keys)
    made = Operator(joined, chosen, below, None, needs, open_ends=True, written=written)
    if not partial:
        return made
    made = kept(made)
    merged = MergeAggregate(joined, len(keys), calls, names)
    by = tuple(column(made.schema, n) for n in range(len(keys)))
    return Operator(
        merged, MergeTactic.chosen(), (made,), None, (Partitioning("keys", by) if by else SINGLE,), open_ends=True
    )


class _Layout:
    """Where keys, arguments and what the residual reads are among the columns of the narrowed inputs."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.join_keys = shape.join_keys
        self.columns: list[list[Expression]] = [[] for _ in shape.relations]
        for n in range(len(self.join_keys)):
            for i in range(len(shape.relations)):
                self.key_column(i, n)
        self.own = tuple(
            ref
            for relation, first in zip(shape.relations, shape.bounds, strict=False)
            for ref in _refs(relation, first)
        )
        for expression in (*shape.keys, *(call.argument for call in shape.calls if call.argument is not None)):
            if shape.own(expression) is not None:
                self._add(expression)
            else:  # it is computed for the matches, from the columns of several inputs
                self._add_columns(expression)
        whole = conjunction(shape.residual)
        if whole is not None:
            self._add_columns(whole)
        for i, relation in enumerate(shape.relations):
            if not self.columns[i]:
                self.columns[i].append(column(relation.schema, 0))
        self.residual = None if whole is None else self._over_columns(whole)

    def _add(self, expression: Expression) -> tuple[int, int]:
        input_and_key = self.shape.own(expression)
        assert input_and_key is not None
        i, local = input_and_key
        if local not in self.columns[i]:
            self.columns[i].append(local)
        return i, self.columns[i].index(local)

    def _add_columns(self, expression: Expression) -> None:
        for at in sorted(columns_of(expression)):
            self._add(self.own[at])

    def _over_columns(self, expression: Expression) -> Expression:
        """Over the columns of all narrowed inputs side by side."""
        read = columns_of(expression)
        return substitute(expression, tuple(self.index(ref) if at in read else ref for at, ref in enumerate(self.own)))

    def argument(self, expression: Expression) -> Expression:
        """The column that an argument is, or, where it reads several inputs, the expression over their columns."""
        return self._over_columns(expression) if self.shape.own(expression) is None else self.index(expression)

    def key_column(self, i: int, n: int) -> int:
        """The column of join key n on input i."""
        local = next(expression for at, expression in self.join_keys[n] if at == i)
        if local not in self.columns[i]:
            self.columns[i].append(local)
        return self.columns[i].index(local)

    def join_key(self, key: Expression) -> int | None:
        """Which join key an expression to group by is."""
        input_and_key = self.shape.own(key)
        assert input_and_key is not None
        for n, join_key in enumerate(self.join_keys):
            if any(i == input_and_key[0] and same_key(expression, input_and_key[1]) for i, expression in join_key):
                return n
        return None

    def index(self, expression: Expression) -> ColumnRef:
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
            operator = kept(_passing(node, FilterTactic, operator))
        schema = operator.schema
        wanted = self.columns[i]
        if wanted == [column(schema, at) for at in range(len(schema))]:
            return operator
        names = tuple(e.name if isinstance(e, ColumnRef) else str(e) for e in wanted)
        return _passing(Project(a_relation(operator.node), tuple(wanted), names), ProjectTactic, operator)


def _passing(node: Relation, tactic: type[FilterTactic | ProjectTactic], below: Operator) -> Operator:
    return Operator(node, tactic("nothing"), (below,), None, (ANY,), below.ends_grow, open_ends=below.open_ends)


def _refs(relation: Relation, first: int) -> list[ColumnRef]:
    return [ColumnRef(first + i, column.type, column.name) for i, column in enumerate(relation.schema)]
