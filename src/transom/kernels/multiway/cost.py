"""What each tactic of a join of many inputs is expected to cost: microseconds a row, of work and until its answer.

Rows that come in batches share the price of a step, so what counts is the work of all probes, intermediate rows and
results. Where rows come one by one the steps themselves cost most, and what counts is how long the row that completes a
result has to wait for it: the critical path. A tactic that hands work to other threads pays for that each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

from transom.kernels.multiway.join_tree import Tree, joins_of
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import JoinStatistics, Machine, bits, of
from transom.plan.expression import Call, Expression, Literal

TACTICS: Final = ("tree", "parallel_tree", "mjoin", "parallel_mjoin")

# Microseconds. Those of rows in batches were fitted to 39 runs on two quiet cores: 3 to 8 inputs, half a match to four
# matches a probe, batches of 2,000 rows of each input. The estimates are within a sixth of what was measured (root mean
# square), at worst within 36 %. A task has half as much again, by runs on other cores, where the product of three sets
# gains nothing. Prices of predicates, of moving rows and of steps with one row are judgement: orders of magnitude.
# Predicates count as what Arrow takes; those that are formulas of plain numbers cost a join of many less.
# In batches:
AROUND: Final = 0.32  # a row, whatever the tactic: taken in, given its lifetime, kept and linked
TREE_ROW: Final = 0.17  # a row that comes to a join of two: kept, and probed with
TREE_COLUMN: Final = 0.057  # a row that a join of two builds, for each input that it has columns of
HOP: Final = 0.11  # a partial tuple that probes another input
TASK_HOP: Final = 0.15  # a row that probes another input in a task of its own
WRITTEN: Final = 0.11  # a whole tuple that is written down before its columns are gathered
GATHERED: Final = 0.031  # a result, or a kept tuple, for each of its members
FOREST_ROW: Final = 1.4  # a tuple that a tree of the forest keeps
CHECKED: Final = 0.01  # a tuple that a predicate is asked of, for each part of the predicate
CHECKED_TEXT: Final = 0.2  # the same of a part that searches texts
MOVED: Final = 1.0  # a row that moves into a partition, from a source or from another join
PART: Final = 8192  # rows that share a hand-over
# One row a step:
TREE_STEP: Final = 40.0  # a join of two that a row reaches
STEP: Final = 30.0  # a join of many that a row reaches
ONE_HOP: Final = 0.5  # another input that it is probed with
ONE_CHECK: Final = 15.0  # a predicate that is asked
ONE_TASK: Final = 1.0  # a task that is made and gathered, besides being handed over
ONE_NODE: Final = 15.0  # a kept tree that is brought up to date

WORTH: Final = 0.75
"""A tactic with threads has to be so much better than the best one without: it takes cores that others may need."""

_SLOW: Final = frozenset(("like", "ilike", "contains", "regexp_matches", "starts_with", "ends_with"))


@dataclass(frozen=True)
class Estimate:
    """Microseconds of work a row, and from its arrival to its answer."""

    work: float
    latency: float


@dataclass(frozen=True)
class Costs:
    """The estimates of all tactics. `one_by_one`: what counts is the time to the answer, otherwise the work."""

    estimates: dict[str, Estimate]
    one_by_one: bool
    rate: float

    def price(self, tactic: str) -> float:
        """What counts. Where more work comes than can be done, rows wait for those before them."""
        estimate = self.estimates[tactic]
        if not self.one_by_one:
            return estimate.work
        return estimate.latency / max(1 - estimate.work * self.rate / 1e6, 0.02)

    def cheapest(self, possible: tuple[str, ...]) -> str:
        """Of these tactics; one with threads only where it is much better than those without."""
        plain = [name for name in possible if not name.startswith("parallel_")]
        best = min(plain or possible, key=self.price)
        threaded = [name for name in possible if self.price(name) < WORTH * self.price(best)]
        return min(threaded, key=self.price, default=best)


def costs(node: MultiwayJoin, statistics: JoinStatistics, tree: Tree, machine: Machine, one_by_one: bool) -> Costs:
    """What the join would cost by each tactic; `tree` is the shape that the tree would have."""
    model = _Model(node, statistics, machine)
    model_of = model.one_by_one if one_by_one else model.in_batches
    return Costs(model_of(tree), one_by_one, statistics.rate)


@dataclass(frozen=True)
class ChangingCosts:
    """Of a join that may change between trees and mjoin, in one partition: microseconds a row of each, the trees first,
    and what it costs to bring each of them to where the join is. `a_step` is the share of rows that come in a step of
    their own: the others share the price of theirs."""

    node: MultiwayJoin
    statistics: JoinStatistics
    a_step: float

    def a_row(self, trees: tuple[Tree, ...]) -> list[float]:
        model = _Model(self.node, self.statistics, Machine())
        rate = max(self.statistics.rate, 1e-9)
        each = [(i, own / rate) for i, own in enumerate(model.rates) if own]
        prices = []
        for tree in trees:
            steps = sum(share * model.tree_path(i, tree).work for i, share in each)
            prices.append(AROUND + model.tree(tree) / rate + self.a_step * steps)
        steps = sum(share * model.mjoin_path(i).work for i, share in each)
        return [*prices, model.mjoin() / rate + self.a_step * steps]

    def to_change(self, tree: Tree | None) -> float:
        """To this tree, or to mjoin (None): the rows alive are kept, and a tree makes what it keeps between joins."""
        alive = self.statistics.alive
        total = AROUND * sum(own.alive for own in self.statistics.inputs)
        for left, right in () if tree is None else joins_of(tree):
            total += TREE_ROW * (alive(left) + alive(right))
            if left | right != self.statistics.all:
                total += TREE_COLUMN * (left | right).bit_count() * alive(left | right)
        return total


class _Model:
    def __init__(self, node: MultiwayJoin, statistics: JoinStatistics, machine: Machine) -> None:
        self.statistics = statistics
        self.machine = machine
        self.count = len(statistics.inputs)
        self.results = statistics.births(statistics.all)
        self.order = _order(statistics)
        self.rates = [own.rate for own in statistics.inputs]
        parts = (*node.residual, *(() if node.last is None else (node.last,)))
        prices = [_price(part) for part in parts]
        self.checks = [(over, share, us) for (over, share), us in zip(statistics.residual, prices, strict=True)]
        self.spread = machine.partitions if node.common_keys else 1
        """Over how many partitions an operator for all inputs runs."""

    # --- in batches --------------------------------------------------------------------------------------------------

    def in_batches(self, tree: Tree) -> dict[str, Estimate]:
        """Work is the time in which a row is done with: what threads or partitions do at once counts once."""
        rate = max(self.statistics.rate, 1e-9)
        brought = MOVED * rate if self.machine.partitions > 1 else 0.0
        micros = {
            "tree": AROUND * rate + self.tree(tree),
            "parallel_tree": (brought + self._forest()) / self.spread,
            "mjoin": (brought + self.mjoin()) / self.spread,
            "parallel_mjoin": (brought + self._parallel_mjoin()) / self.spread,
        }
        return {name: Estimate(us / rate, us / rate) for name, us in micros.items()}

    def tree(self, tree: Tree) -> float:
        births, total = self.statistics.births, 0.0
        moved = set(self._moved(tree))
        for left, right in joins_of(tree):
            both = left | right
            work = TREE_ROW * (births(left) + births(right)) + TREE_COLUMN * both.bit_count() * births(both)
            work += sum(us * births(both) / max(share, 1e-6) for _, share, us in self._bound(both, left, right))
            if self.machine.partitions > 1:
                work += MOVED * sum(births(side) for side in (left, right) if side.bit_count() == 1 or side in moved)
            total += work / (self.machine.partitions if self._classes(left, right) else 1)
        return total

    def _moved(self, tree: Tree) -> Iterator[int]:
        """The joins whose rows have to move before the next one."""
        spread: dict[int, int] = {}
        for left, right in joins_of(tree):
            kept = shared = self._classes(left, right)
            for side in (left, right):
                if side.bit_count() > 1 and not spread[side] & shared:
                    yield side
                elif side.bit_count() > 1:
                    kept &= spread[side]
            spread[left | right] = kept or shared

    def mjoin(self) -> float:
        total = 0.0
        for i, rate in enumerate(self.rates):
            total += rate * AROUND
            for before, after in self._hops(i):
                total += rate * HOP * self.statistics.found_by(i, before)
                bound = self._bound(after, before, after & ~before)
                total += sum(
                    rate * us * self.statistics.found_by(i, after) / max(share, 1e-6) for _, share, us in bound
                )
        return total + (WRITTEN + GATHERED * self.count) * self.results

    def _parallel_mjoin(self) -> float:
        """Predicates of two inputs are asked at once; probes wait for memory. The rest is as mjoin does it."""
        total, workers = 0.0, min(self.machine.cores, self.count - 1)
        for i, rate in enumerate(self.rates):
            group = self._group(i)
            tasks = checking_us = 0.0
            for j in bits(group):
                pair = 1 << i | 1 << j
                tasks += TASK_HOP + GATHERED * self.statistics.found_by(i, pair)
                checking_us += sum(
                    us * self.statistics.found_by(i, pair) / max(s, 1e-6) for _, s, us in self._bound(pair, 0, 0)
                )
            handed = self.machine.handover_us * group.bit_count() / PART
            total += rate * (AROUND + tasks + checking_us / workers + handed)
            for before, _ in self._hops(i, group):
                total += rate * HOP * self.statistics.found_by(i, before)
        return total + GATHERED * self.count * self.results

    def _forest(self) -> float:
        total = 0.0
        for node in self._nodes():
            total += self.statistics.births(node) * (FOREST_ROW + GATHERED * node.bit_count())
        for i, rate in enumerate(self.rates):
            total += rate * (AROUND + HOP * len(self._parts(self.statistics.all & ~(1 << i))))
            total += rate * self.machine.handover_us * 2 / PART
        return total + GATHERED * self.count * self.results

    # --- one by one --------------------------------------------------------------------------------------------------

    def one_by_one(self, tree: Tree) -> dict[str, Estimate]:
        each = [(i, rate / max(self.statistics.rate, 1e-9)) for i, rate in enumerate(self.rates) if rate]
        paths_by_tactic = {
            "tree": [self.tree_path(i, tree) for i, _ in each],
            "parallel_tree": [self._forest_path(i) for i, _ in each],
            "mjoin": [self.mjoin_path(i) for i, _ in each],
            "parallel_mjoin": [self._parallel_mjoin_path(i) for i, _ in each],
        }
        return {
            name: Estimate(
                sum(share * path.work for path, (_, share) in zip(paths, each, strict=True)),
                sum(share * path.latency for path, (_, share) in zip(paths, each, strict=True)),
            )
            for name, paths in paths_by_tactic.items()
        }

    def tree_path(self, i: int, tree: Tree) -> Estimate:
        """A row that completes a result passes all joins above it; others stop where they find nothing."""
        work = latency = 0.0
        below = 1 << i
        for left, right in joins_of(tree):
            if (left | right) >> i & 1:
                checks = sum(ONE_CHECK + us for _, _, us in self._bound(left | right, left, right))
                latency += TREE_STEP + checks
                work += (TREE_STEP + checks) * min(1.0, self.statistics.found_by(i, below))
                below = left | right
        return Estimate(work, latency)

    def mjoin_path(self, i: int) -> Estimate:
        work = latency = STEP
        for before, after in self._hops(i):
            checks = self._bound(after, before, after & ~before)
            hop = ONE_HOP + sum(ONE_CHECK + us * self.statistics.found_by(i, before) for *_, us in checks)
            latency += hop
            work += hop * min(1.0, self.statistics.found_by(i, before))
        return Estimate(work, latency)

    def _parallel_mjoin_path(self, i: int) -> Estimate:
        group = self._group(i)
        tasks = []
        for j in bits(group):
            pair = 1 << i | 1 << j
            checks = self._bound(pair, 0, 0)
            checking_us = [self.statistics.found_by(i, pair) / max(share, 1e-6) * us for _, share, us in checks]
            tasks.append(ONE_HOP + ONE_CHECK * len(checks) + sum(checking_us))
        workers = max(1, min(self.machine.cores, len(tasks)))
        at_once = ceil(len(tasks) / workers) * max(tasks, default=0.0)
        threads = self.machine.handover_us if len(tasks) > 1 else 0.0
        rest = sum(ONE_HOP for _ in self._hops(i, group))
        shared = STEP + ONE_TASK * len(tasks) + threads + rest
        return Estimate(shared + sum(tasks), shared + at_once)

    def _forest_path(self, i: int) -> Estimate:
        """The answer is found before the trees are brought up to date, which is done meanwhile if there is a core."""
        answer = STEP + ONE_HOP * len(self._parts(self.statistics.all & ~(1 << i))) + self.machine.handover_us
        upkeep = ONE_NODE * sum(1 for node in self._nodes() if node >> i & 1)
        return Estimate(answer + upkeep, answer if self.machine.cores > 1 else answer + upkeep)

    # --- the graph ---------------------------------------------------------------------------------------------------

    def _classes(self, left: int, right: int) -> int:
        """The classes of keys that both sides have."""
        return of(c for c, members in enumerate(self.statistics.members) if members & left and members & right)

    def _hops(self, i: int, done: int = 0) -> Iterator[tuple[int, int]]:
        """What a row of input i is joined with when it probes another input, and then; `done` need no probe.

        Among those that share a key with what is bound it takes the one with the fewest matches, as rows of each input
        learn to do on their own (`probe_order.py`).
        """
        before = 1 << i | done
        rest = [j for j in self.order if not before >> j & 1]
        while rest:
            linked = [
                j for j in rest if any(members & before and members >> j & 1 for members in self.statistics.members)
            ]
            following = min(linked or rest, key=lambda j: self.statistics.alive(before | 1 << j))
            rest.remove(following)
            yield before, before | 1 << following
            before |= 1 << following

    def _group(self, i: int) -> int:
        """The inputs that share the largest class of keys with input i, without i."""
        own = [members & ~(1 << i) for members in self.statistics.members if members >> i & 1]
        return max(own, key=int.bit_count, default=0)

    def _bound(self, both: int, left: int, right: int) -> list[tuple[int, float, float]]:
        """The predicates that can be asked of `both`, and of neither side."""
        return [
            check for check in self.checks
            if check[0] & both == check[0] and check[0] & left != check[0] and check[0] & right != check[0]
        ]  # fmt: skip

    def _nodes(self) -> set[int]:
        """The sub-trees that a tree for every input needs, each kept once: by halves, and all but a half."""
        sub_trees: set[int] = set()

        def halve(own: list[int], outside: int) -> None:
            sub_trees.update(part for part in self._parts(outside) if part.bit_count() > 1)
            if len(own) > 1:
                sub_trees.update(part for part in self._parts(of(own)) if 1 < part.bit_count() < self.count)
                left, right = own[: len(own) // 2], own[len(own) // 2 :]
                halve(left, outside | of(right))
                halve(right, outside | of(left))

        halve(self.order, 0)
        return sub_trees

    def _parts(self, members: int) -> list[int]:
        return self.statistics.parts(members)


def _order(statistics: JoinStatistics) -> list[int]:
    """The inputs in an order in which few tuples are made on the way, and each shares a key with those before it."""
    rest = list(range(len(statistics.inputs)))
    order: list[int] = []
    done = 0
    while rest:
        linked = [i for i in rest if any(members & done and members >> i & 1 for members in statistics.members)]
        following = min(linked or rest, key=lambda i: statistics.alive(done | 1 << i) if done else inf)
        order.append(following)
        rest.remove(following)
        done |= 1 << following
    return order


def _price(predicate: Expression) -> float:
    """Microseconds for a tuple that it is asked of; what stands in it twice is computed twice."""
    if isinstance(predicate, Literal):
        return 0.0
    slow = isinstance(predicate, Call) and predicate.function in _SLOW
    return CHECKED + CHECKED_TEXT * slow + sum(map(_price, predicate.children))
