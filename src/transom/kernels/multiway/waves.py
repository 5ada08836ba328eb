"""Routes in waves: which inputs can be probed at once, because none of them needs what another one finds.

The first wave of a row are the inputs that share keys with it, the next one those that share keys with these, and so
on; where one key joins all inputs there is one wave (paper 3, section 3.2). An input waits for one of its own wave if
that one gives it more keys to be found by. Each probe gives a set of matches; the tuples are the product of these sets,
and what has to hold between members of one wave is asked of them as soon as those are put together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from transom.kernels.formula import Formula
from transom.kernels.multiway.graph import Check, Hop, JoinGraph
from transom.kernels.multiway.pruned_walk import Formulas
from transom.plan.expression import Expression


@dataclass(frozen=True)
class Merge:
    """Sets of a wave, from hop number `first` up to `last`, that are multiplied; and what is asked of the tuples."""

    first: int
    last: int
    check: Check | None


@dataclass(frozen=True)
class Wave:
    """Hops from inputs that are bound; their checks read nothing but what is bound and the target."""

    hops: tuple[Hop, ...]
    merges: tuple[Merge, ...]

    @cached_property
    def formulas(self) -> Formulas | None:
        """All that its merges ask, where there is something, and all of it is formulas: it is asked in one go."""
        checked: list[Formula | None] = [None] * len(self.hops)
        for merge in self.merges:
            if merge.check is not None:
                checked[merge.last - 1] = merge.check.formula
                if merge.check.formula is None:
                    return None
        return Formulas.of(checked) if any(formula is not None for formula in checked) else None


@dataclass(frozen=True)
class WavedRoute:
    """The waves of a row of one input; `check` is what can be said of that row alone."""

    check: Check | None
    waves: tuple[Wave, ...]

    def prepare(self) -> None:
        """Write down the formulas, for which no row should have to wait."""
        for wave in self.waves:
            wave.formulas  # noqa: B018

    @property
    def checks(self) -> bool:
        """Whether anything is asked but keys and lifetimes."""
        merges = (merge.check for wave in self.waves for merge in wave.merges)
        hops = (hop.check for wave in self.waves for hop in wave.hops)
        return any(check is not None for check in (self.check, *hops, *merges))


def waved_route(graph: JoinGraph, order: tuple[int, ...]) -> WavedRoute:
    """For the rows of input order[0]; where the others can be put together in any order, it is this one."""
    bound, rest = [order[0]], list(order[1:])
    waiting = list(graph.residual)
    alone = graph.ready(bound, waiting)
    waves: list[Wave] = []
    while rest:
        targets = _targets(graph, bound, rest)
        waves.append(_wave(graph, bound, targets, waiting))
        bound += targets
        rest = [target for target in rest if target not in targets]
    return WavedRoute(graph.check(alone) if alone else None, tuple(waves))


def _targets(graph: JoinGraph, bound: list[int], rest: list[int]) -> list[int]:
    """The inputs of the next wave; one that shares no key with anything comes alone."""
    targets: list[int] = []
    for target in rest:
        keys = max(len(graph.shared(source, target)) for source in bound)
        if keys and all(len(graph.shared(other, target)) <= keys for other in targets):
            targets.append(target)
    return targets or rest[:1]


def _wave(graph: JoinGraph, bound: list[int], targets: list[int], waiting: list[Expression]) -> Wave:
    """Takes out of `waiting` what is asked in this wave."""
    hops: list[Hop] = []
    merges: list[Merge] = []
    inputs = set(bound)
    for number, target in enumerate(targets):
        source = max(bound, key=lambda i: len(graph.shared(i, target)))
        by = graph.shared(source, target)
        checked = _equalities(graph, bound, target, by) + graph.ready((*bound, target), waiting)
        check = graph.check(checked) if checked else None
        hops.append(Hop(source, graph.indexes[source].index(by), target, graph.indexes[target].index(by), check))
        of_bound = {c for i in bound for c in graph.classes[i]}
        inputs.add(target)
        checked = _equalities(graph, targets[:number], target, of_bound) + graph.ready(inputs, waiting)
        if checked or number + 1 == len(targets):
            first = merges[-1].last if merges else 0
            merges.append(Merge(first, number + 1, graph.check(checked) if checked else None))
    return Wave(tuple(hops), tuple(merges))


def _equalities(graph: JoinGraph, others: list[int], target: int, but: Iterable[int]) -> list[Expression]:
    """What the target's keys have to equal among these inputs; some classes are looked after elsewhere."""
    return [
        graph.equality(c, next(i for i in others if c in graph.classes[i]), target)
        for c in sorted(graph.classes[target] - set(but))
        if any(c in graph.classes[i] for i in others)
    ]
