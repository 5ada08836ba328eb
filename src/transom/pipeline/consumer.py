"""A query on a shared join, from its `Narrow` on: planned alone and once, whoever else is on the join.

What it reads are outputs of the shared sub-plan, by name: the pairs, and the sides whose rows it counts; of any other
plan that queries share, its rows, which are called pairs as well. Its own plan
has a stand-in for them, the join as this query alone would have it; which columns of the real one it reads is known as
soon as that one is (`columns_in`).

As far as rows need not move, its operators run **beside** the join, in every partition that makes pairs and with what
these hand over by reference. What needs rows elsewhere, equal groups together or all of them in one place, is made of
fragments **above**, as of any plan. Where there is a single partition nothing has to move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa

from transom.kernels.operator import Operator
from transom.kernels.shared_join.node import SharedJoin
from transom.pipeline.answer import held_output, meeting_columns, output_form, output_key, output_schema
from transom.plan.catalogue import Catalogue
from transom.plan.options import time_settings
from transom.planner.fingerprint import fingerprint
from transom.planner.fragments import Fragment, fragments
from transom.planner.sharing import Request, consumer, shared_subplan
from transom.planner.sharing_plan import SharablePlan
from transom.planner.sharing_shape import Sharable

PAIRS: Final = "pairs"
SIDES: Final = ("left", "right")


def outputs_of(subplan: Operator) -> dict[str, Operator]:
    """The operators of a shared sub-plan whose rows queries read, by name."""
    outputs = {PAIRS: subplan}
    if isinstance(subplan.node, SharedJoin):
        outputs |= zip(SIDES, subplan.inputs, strict=True)
    return outputs


@dataclass(frozen=True)
class ConsumerSpec:
    """A query on a shared sub-plan: its name, its request to it, and the form of its answer."""

    name: str
    request: Request
    emit: str

    @property
    def of_join(self) -> Sharable:
        """The query's request where the sub-plan is a join."""
        assert isinstance(self.request, Sharable)
        return self.request


@dataclass(frozen=True)
class Consumer:
    """`begin`: its time begins there, and it sees rows from there on; None: from the first row on, all of them."""

    spec: ConsumerSpec
    catalogue: Catalogue
    begin: int | None = None

    @property
    def reads_as_it_is(self) -> bool:
        """Whether it reads the rows of the shared sub-plan under their open row ids, and not what it narrows."""
        return isinstance(self.spec.request, SharablePlan)

    @cached_property
    def subplan(self) -> Operator:
        """Stands for the join."""
        return shared_subplan([self.spec.request], self.catalogue)

    @cached_property
    def root(self) -> Operator:
        return consumer(self.spec.request, self.catalogue, self.subplan, self.begin)

    @cached_property
    def operators(self) -> list[Operator]:
        """The operators of this query alone, a chain that begins with what narrows the pairs."""
        below = {id(operator) for operator in self.subplan.walk()}
        return [operator for operator in self.root.walk() if id(operator) not in below]

    @cached_property
    def emit_name(self) -> str:
        return output_form(self.root, self.spec.emit)

    @cached_property
    def output_schema(self) -> pa.Schema:
        return output_schema(self.emit_name, self.root.schema)

    @cached_property
    def held_output(self) -> pa.Schema:
        return held_output(self.emit_name, self.root.schema)

    @cached_property
    def output_key(self) -> tuple[str, ...] | None:
        return output_key(self.root, self.spec.emit)

    @cached_property
    def fingerprint(self) -> str:
        """Names the query, whatever others there are and whenever it came."""
        root = self.root if self.begin is None else consumer(self.spec.request, self.catalogue, self.subplan)
        return fingerprint(list(root.walk()), self.emit_name, *time_settings(self.catalogue))

    # --- where it runs -----------------------------------------------------------------------------------------------

    @cached_property
    def _fragments(self) -> list[Fragment]:
        return fragments(self.root, meeting_columns(self.root, self.spec.emit))

    def beside(self, partitions: int) -> list[Operator]:
        """The operators that run where the pairs are made; all of them if there is nothing `above`."""
        if partitions == 1:
            return self.operators
        (here,) = [part for part in self._fragments if any(operator is self.subplan for operator in part.operators)]
        return [operator for operator in self.operators if any(operator is other for other in here.operators)]

    def above(self, partitions: int) -> list[Fragment]:
        """Where rows have to move to; their numbers are those that they would have if the query were alone."""
        if partitions == 1:
            return []
        below = {id(operator) for operator in self.subplan.walk()}
        return [part for part in self._fragments if not any(id(operator) in below for operator in part.operators)]

    def input_of(self, operator: Operator) -> str | None:
        """The output of the shared sub-plan that an operator of the plan stands for; None: it is one of its own."""
        outputs = outputs_of(self.subplan).items()
        return next((name for name, output in outputs if output is operator), None)

    def slides_below(self, slides: Mapping[str, int]) -> dict[int, int]:
        """As `PartSlides.last_of_windows`, for the windows that stand here for those of a shared sub-plan, which are
        known by number. A part of queries is planned alike for all of them; a join has no windows that slide."""
        if not slides or not self.reads_as_it_is:
            return {}
        numbered = enumerate(self.subplan.walk())
        return {id(operator): slides[str(number)] for number, operator in numbered if str(number) in slides}

    def columns_in(self, subplan: Operator) -> dict[str, tuple[int, ...]]:
        """Which columns it reads of every output of a shared sub-plan, in the order in which it expects them."""
        own_join, shared_join = self.subplan.node, subplan.node
        if self.reads_as_it_is:
            return {PAIRS: tuple(range(len(subplan.schema)))}
        assert isinstance(own_join, SharedJoin) and isinstance(shared_join, SharedJoin)
        columns = {PAIRS: (*(shared_join.indexes.index(index) for index in own_join.indexes), len(shared_join.indexes))}
        for name, own, all_columns in zip(SIDES, own_join.side_columns, shared_join.side_columns, strict=True):
            columns[name] = tuple(all_columns.index(index) for index in own)
        return columns
