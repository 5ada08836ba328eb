"""Projections that only pick columns of a join are left to the join: it gathers no others then, and nothing is copied.

In plans and counters such a projection stays what it is; it passes on what it gets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa

from transom.kernels.kernel import Kernel
from transom.kernels.operator import Operator
from transom.kernels.select.select import ProjectKernel


@runtime_checkable
class Picking(Protocol):
    """A kernel that can give some of its columns, in another order and under other names, instead of all."""

    def picking(self, picks: Sequence[int], schema: pa.Schema) -> Kernel: ...


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
