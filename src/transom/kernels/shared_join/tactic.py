"""Tactics of a join that several queries share: its windows, the join, and what one query sees of it."""

from __future__ import annotations

from collections.abc import Sequence

from transom.core.time import UNBOUNDED, format_duration, format_instant
from transom.kernels import description
from transom.kernels.join.join import JoinState
from transom.kernels.join.tactic import JoinTactic, LazyHashTactic, NestedLoopTactic, RingHashTactic
from transom.kernels.kernel import Kernel
from transom.kernels.operator import Key, Operator, Site, Tactic, column
from transom.kernels.shared_join.counted_window import CountedWindowKernel, CountedWindowState
from transom.kernels.shared_join.join import SharedJoinKernel
from transom.kernels.shared_join.narrow import NarrowKernel
from transom.kernels.shared_join.narrow_rows import NarrowRowsKernel, NarrowRowsState, SideWindow
from transom.kernels.shared_join.node import NUMBERS, CountedWindow, Narrow, SharedJoin
from transom.plan.expression import Expression, substitute


class CountedTactic(Tactic):
    name = "counted"
    nodes = (CountedWindow,)
    title = "window "
    states = (CountedWindowState,)

    @classmethod
    def chosen(cls, node: CountedWindow) -> CountedTactic:
        time = "" if node.length == UNBOUNDED else f", for {format_duration(node.length)} at least"
        return cls(f"time and open row id of each of {node.rows} rows{time}")

    def describe(self, operator: Operator) -> str:
        return "rows and their numbers, as long as a query holds them"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node = operator.node
        assert isinstance(node, CountedWindow)
        return (CountedWindowKernel(node.length, node.rows, operator.schema.held()),)

    def counts_rows(self, operator: Operator) -> bool:
        return True


class SharedJoinTactic(JoinTactic):
    """A tactic of joins of two, by which the pairs of the widest windows are made."""

    nodes = (SharedJoin,)
    title = "shared join "
    states = (JoinState,)
    stays_spread = True

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        keys, width = self.predicate(operator), len(operator.inputs[0].schema)
        schema = operator.schema.held()
        pair = schema.remove(len(schema) - 1)
        return (SharedJoinKernel(self.name, keys.left, keys.right, keys.residual, pair, width),)

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return None

    def lasts(self, operator: Operator, below: bool) -> bool:
        return False


class SharedRingHashTactic(SharedJoinTactic, RingHashTactic):
    pass


class SharedLazyHashTactic(SharedJoinTactic, LazyHashTactic):
    pass


class SharedNestedLoopTactic(SharedJoinTactic, NestedLoopTactic):
    pass


class NarrowingTactic(Tactic):
    nodes = (Narrow,)

    def describe(self, operator: Operator) -> str:
        node = _narrow(operator)
        sides = zip(operator.inputs[0].inputs, node.windows, strict=True)
        shown = ", ".join(f"{description.origin(child)} {spec}" for child, spec in sides)
        return shown if node.begin is None else f"{shown} since {format_instant(node.begin)}"


class NarrowTactic(NarrowingTactic):
    name = "narrow"

    @classmethod
    def chosen(cls) -> NarrowTactic:
        return cls("nothing", "two comparisons a pair of the shared join")

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node, pairs = _narrow(operator), _Pairs(operator)
        left, right = _lengths(node, site)
        return (NarrowKernel(pairs.columns, pairs.age, (left, right), node.begin, operator.schema.held()),)

    def keys_below(self, operator: Operator, key: Expression) -> tuple[Expression, ...] | None:
        """Over the columns of the shared join that the query reads."""
        pairs = _Pairs(operator)
        return (substitute(key, tuple(column(pairs.operator.schema, at) for at in pairs.columns)),)


class NarrowRowsTactic(NarrowingTactic):
    """Where a window of the query counts rows."""

    name = "narrow_rows"
    states = (NarrowRowsState,)

    @classmethod
    def chosen(cls) -> NarrowRowsTactic:
        return cls("four numbers for each of its open pairs", "O(1) a pair, O(log n) for its end")

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        node, pairs = _narrow(operator), _Pairs(operator)
        left, right = (
            SideWindow(spec.rows, length, None if spec.rows is None else pairs.indexes.index(NUMBERS[side]))
            for side, (spec, length) in enumerate(zip(node.windows, _lengths(node, site), strict=True))
        )
        return (NarrowRowsKernel(pairs.columns, pairs.age, (left, right), node.begin, operator.schema.held()),)


class _Pairs:
    """The shared join below a query, and where in it the columns are that the query reads."""

    def __init__(self, narrow: Operator) -> None:
        self.operator = narrow.inputs[0]
        assert isinstance(self.operator.node, SharedJoin)
        self.indexes = self.operator.node.indexes
        self.columns = tuple(self.indexes.index(index) for index in _narrow(narrow).read)
        self.age = len(self.operator.schema) - 1


def _narrow(operator: Operator) -> Narrow:
    assert isinstance(operator.node, Narrow)
    return operator.node


def _lengths(node: Narrow, site: Site) -> list[int]:
    """How long rows of either side live by time."""
    return [site.tick if spec.now else UNBOUNDED if spec.range is None else spec.range for spec in node.windows]
