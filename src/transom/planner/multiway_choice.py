"""Which tactic a join of many inputs has, and why: the one that is forced, or the one that costs the least.

What was decided can be written down, so that a query that goes on elsewhere is planned as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from transom.core.errors import CheckpointError, UnsupportedError
from transom.kernels.changing import STAY, WATCH
from transom.kernels.multiway.cost import TACTICS, Costs, costs
from transom.kernels.multiway.join_tree import Tree, best_tree, leaves
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import JoinStatistics, Machine
from transom.kernels.multiway.tactic import AdaptiveJoinTactic
from transom.kernels.operator import Tactic
from transom.planner.statistics import Statistics

Reasons = tuple[tuple[str, str], ...]

ADAPTIVE: Final = AdaptiveJoinTactic.name

ONE_OPERATOR: Final = (*TACTICS[1:], ADAPTIVE)
"""The tactics that are one operator for all inputs."""


@dataclass(frozen=True)
class MultiwayDecision:
    """The tactic of a join of many inputs, and the shape of its tree."""

    tactic: str
    tree: Tree | None = None

    def fits(self, count: int) -> bool:
        """Whether it can be one about so many inputs."""
        if self.tree is None:
            return self.tactic in ONE_OPERATOR and self.tactic != ADAPTIVE
        return self.tactic in ("tree", ADAPTIVE) and sorted(leaves(self.tree)) == list(range(count))


def written(decisions: Sequence[MultiwayDecision]) -> str:
    """As a text, for a checkpoint.

    >>> written([MultiwayDecision("tree", ((0, 2), 1)), MultiwayDecision("mjoin")])
    '[["tree", [[0, 2], 1]], ["mjoin", null]]'
    """
    return json.dumps([[decision.tactic, decision.tree] for decision in decisions])


def read_decisions(text: str) -> tuple[MultiwayDecision, ...]:
    """
    >>> read_decisions('[["tree", [[0, 2], 1]]]')
    (MultiwayDecision(tactic='tree', tree=((0, 2), 1)),)
    """
    try:
        return tuple(MultiwayDecision(str(tactic), _tree(tree)) for tactic, tree in json.loads(text))
    except (ValueError, TypeError):
        raise CheckpointError(
            "the plan in the checkpoint cannot be read",
            remedy="put it back from a copy, or start with an empty checkpoint folder",
        ) from None


def _tree(written: Any) -> Tree | None:
    if not isinstance(written, list):
        return None if written is None else int(written)
    left, right = (_tree(part) for part in written)
    if left is None or right is None:
        raise ValueError
    return left, right


@dataclass(frozen=True)
class MultiwayChoice:
    """A decision, those that are not taken with the reasons, and the estimates behind it.

    One that may change is `first` in force, and changes as `adapt` says.
    """

    decision: MultiwayDecision
    not_taken: Reasons
    estimates: tuple[tuple[str, float], ...] = ()
    rests_on: Reasons = ()
    first: str = "tree"
    adapt: str = WATCH

    @property
    def name(self) -> str:
        return self.decision.tactic

    def onto(self, tactic: Tactic) -> Tactic:
        """Shown with the operator that stands for the join."""
        price = dict(self.estimates).get(self.first if self.name == ADAPTIVE else self.name)
        added = f"{tactic.costs}; {_us(price)} a row estimated" if price is not None else tactic.costs
        not_taken = (*tactic.not_taken, *self.not_taken)
        return replace(tactic, costs=added, not_taken=not_taken, estimates=self.estimates, rests_on=self.rests_on)


@dataclass(frozen=True)
class Chooser:
    """`forced` is a tactic or 'auto', `pairs` that of joins of two; `negative`: lifetimes are sent as negative
    tuples.

    `statistics` are asked only where there is something to decide.
    """

    forced: str
    pairs: str
    negative: bool
    statistics: Statistics
    decided: tuple[MultiwayDecision, ...] = ()
    adapt: str = STAY

    def choose(self, node: MultiwayJoin, written: Tree, number: int, stamped: bool, forget: int = 0) -> MultiwayChoice:
        """For the join of this number, whose streams may all be stamped on arrival; `written` is its plainest tree.

        `forget`: so many of its inputs enter with their windows; joins of two of those remember nothing.
        """
        cannot = self._cannot(forget)
        if self.forced in cannot:
            raise UnsupportedError(
                f"the multiway join tactic '{self.forced}' cannot run this query: {cannot[self.forced]}",
                remedy="SET multiway = 'auto', or SET lifetimes = 'direct'",
            )
        if self.forced == ADAPTIVE:
            return self._changing(self._tree(node, written), self._others(ADAPTIVE, cannot))
        if self.forced in ONE_OPERATOR:
            return MultiwayChoice(MultiwayDecision(self.forced), self._others(self.forced, cannot))
        if len(node.relations) == 2:
            return MultiwayChoice(MultiwayDecision("tree", written), ())
        decided = self.decided[number] if number < len(self.decided) else None
        if decided is not None and self.forced in ("auto", decided.tactic) and decided.fits(len(node.relations)):
            return MultiwayChoice(
                decided,
                _reasons(decided.tactic, cannot, lambda name: f"the checkpoint was written with {decided.tactic}"),
                adapt=self.adapt,
            )
        return self._by_cost(node, written, cannot, stamped)

    def _cannot(self, forget: int) -> dict[str, str]:
        if self.negative:
            return dict.fromkeys(ONE_OPERATOR, "lifetimes are sent as negative tuples")
        if self.forced == ADAPTIVE:
            return {}
        if self.adapt == STAY:
            return {ADAPTIVE: "SET adapt is 'off'"}
        return {ADAPTIVE: "joins of two remember nothing of windows that are over"} if forget > 1 else {}

    def _others(self, name: str, cannot: dict[str, str]) -> Reasons:
        return _reasons(name, cannot, lambda other: "not requested")

    def _tree(self, node: MultiwayJoin, written: Tree) -> Tree:
        return best_tree(self.statistics.join(node), written, self.statistics.machine.partitions > 1)

    def _changing(self, tree: Tree, not_taken: Reasons) -> MultiwayChoice:
        return MultiwayChoice(MultiwayDecision(ADAPTIVE, tree), not_taken, adapt=self.adapt)

    def _by_cost(self, node: MultiwayJoin, written: Tree, cannot: dict[str, str], stamped: bool) -> MultiwayChoice:
        machine = self.statistics.machine
        statistics = self.statistics.join(node)
        tree = best_tree(statistics, written, machine.partitions > 1)
        if self.forced == "tree":
            return MultiwayChoice(MultiwayDecision("tree", tree), self._others("tree", cannot))
        if self.pairs != "auto":
            cannot = dict.fromkeys(ONE_OPERATOR, f"SET join asks for {self.pairs}") | cannot
        one_by_one = machine.one_by_one and stamped
        prices = costs(node, statistics, tree, machine, one_by_one)
        name = prices.cheapest(tuple(tactic for tactic in TACTICS if tactic not in cannot))
        estimates = tuple((tactic, prices.price(tactic)) for tactic in TACTICS)
        rests_on = _rests_on(statistics, machine, one_by_one)
        if name not in ("tree", "mjoin"):
            cannot = {ADAPTIVE: f"it changes between tree and mjoin, and {name} costs less"} | cannot
        elif one_by_one:
            cannot = {ADAPTIVE: "rows come one by one, and what costs most is a step, whatever comes"} | cannot
        elif name == "tree" and machine.partitions > 1 and not node.common_keys:
            cannot = {ADAPTIVE: "there is no key of all inputs, so it would run in one partition"} | cannot
        if ADAPTIVE not in cannot:
            hosted = {"tree": "changes to it when it is better", "mjoin": "changes to it when it is better"}
            hosted[name] = "begins with it"
            reasons = _reasons(
                ADAPTIVE,
                cannot,
                lambda other: (
                    f"{_us(prices.price(other))} a row estimated, {ADAPTIVE} {hosted[other]}"
                    if other in hosted
                    else _dearer(prices, other, name)
                ),
            )
            changing = self._changing(tree, reasons)
            return replace(changing, estimates=estimates, rests_on=rests_on, first=name)
        reasons = _reasons(name, cannot, lambda other: _dearer(prices, other, name))
        decision = MultiwayDecision(name, tree if name == "tree" else None)
        return MultiwayChoice(decision, reasons, estimates, rests_on)


def _reasons(taken: str, cannot: dict[str, str], otherwise: Callable[[str], str]) -> Reasons:
    return tuple((name, cannot.get(name) or otherwise(name)) for name in (*TACTICS, ADAPTIVE) if name != taken)


def _dearer(prices: Costs, name: str, taken: str) -> str:
    price, best = prices.price(name), prices.price(taken)
    if price < best:
        return f"{_us(price)} a row estimated, {taken} {_us(best)}: too little for the threads it takes"
    return f"{_us(price)} a row estimated, {taken} {_us(best)}"


def _rests_on(statistics: JoinStatistics, machine: Machine, one_by_one: bool) -> Reasons:
    rates = ", ".join(_number(input_.rate) for input_ in statistics.inputs)
    origins = sorted({input_.origin for input_ in statistics.inputs if input_.rate}) or ["assumed"]
    matched = [statistics.found_by(i, 1 << i | 1 << j) for i, j in statistics.linked if statistics.inputs[i].rate]
    matches = f"{_span(matched)} a probe" if matched else "by no key"
    if matched and all(keys is None for keys in statistics.keys):
        matches += " (assumed)"
    threads = f"{machine.cores} {'core' if machine.cores == 1 else 'cores'}, {machine.handover_us:.0f} us a hand-over"
    return (
        ("rates", f"{rates} rows a second ({' and '.join(origins)})"),
        ("matches", matches),
        ("rows", "one by one" if one_by_one else "in batches"),
        ("machine", threads + (f", {machine.partitions} partitions" if machine.partitions > 1 else "")),
    )


def _span(numbers: list[float]) -> str:
    """
    >>> _span([1.0, 1.0]), _span([0.501, 2])
    ('1', '0.5 to 2')
    """
    least, most = _number(min(numbers)), _number(max(numbers))
    return least if least == most else f"{least} to {most}"


def _number(value: float) -> str:
    """
    >>> _number(0.1234), _number(1234.5), _number(2.0)
    ('0.12', '1,234', '2')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _us(value: float) -> str:
    return f"{_number(value)} us"
