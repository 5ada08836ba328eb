"""What is left to the operator below, which then does it with less.

Projections that only pick columns of a join are left to the join: it gathers no others then, and nothing is copied. A
merge of partial results has nothing to merge where it runs beside the one who makes them: one who can make the results
themselves does so. In plans and counters they stay what they are; they pass on what they get.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa

from transom.kernels.joinagg.node import MergeAggregate
from transom.kernels.kernel import Kernel
from transom.kernels.operator import Operator
from transom.kernels.select.select import ProjectKernel


@runtime_checkable
class Picking(Protocol):
    """A kernel that can give some of its columns, in another order and under other names, instead of all."""

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> Kernel: ...


@runtime_checkable
class MakingResults(Protocol):
    """A kernel of partial results that can give the results themselves, in this schema; `final`: of those only what
    they are at the end of a step is seen."""

    def whole(self, schema: pa.Schema, final: bool) -> Kernel: ...


def fold_merges(
    operators: Sequence[Operator],
    kernels: list[tuple[Kernel, ...]],
    given: Collection[int],
    finals: Mapping[int, str],
) -> None:
    """Where all partial results are made here, and nobody but the merge reads them."""
    number = {id(operator): i for i, operator in enumerate(operators)}
    readers = Counter(id(child) for operator in operators for child in operator.inputs)
    for i, operator in enumerate(operators):
        if not isinstance(operator.node, MergeAggregate) or id(operator.inputs[0]) not in number:
            continue
        below = number[id(operator.inputs[0])]
        read_by_others = readers[id(operator.inputs[0])] != 1 or id(operator.inputs[0]) in given
        if read_by_others or len(kernels[below]) != 1:
            continue
        partial = kernels[below][0]
        if isinstance(partial, MakingResults):
            kernels[below] = (partial.whole(operator.schema.held(), id(operator) in finals),)
            kernels[i] = ()


def fold_projections(operators: Sequence[Operator], kernels: list[tuple[Kernel, ...]], given: Collection[int]) -> None:
    """Where nobody but the projection reads the join; those that are `given` (their ids) are read by others, too."""
    number = {id(operator): i for i, operator in enumerate(operators)}
    readers = Counter(id(child) for operator in operators for child in operator.inputs)
    for i, operator in enumerate(operators):
        if len(operator.inputs) != 1 or id(operator.inputs[0]) not in number:  # which may be elsewhere
            continue
        below = number[id(operator.inputs[0])]
        read_by_others = readers[id(operator.inputs[0])] != 1 or id(operator.inputs[0]) in given
        if len(kernels[i]) != 1 or len(kernels[below]) != 1 or read_by_others:
            continue
        project, join = kernels[i][0], kernels[below][0]
        if isinstance(project, ProjectKernel) and project.picks is not None and isinstance(join, Picking):
            kernels[below] = (join.picking(project.picks, project.schema),)
            kernels[i] = ()
