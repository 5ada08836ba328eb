"""What one query does with the pairs of a shared join: operators of its own, a beginning of its own, a form of its own.

It has its own holders as well, so that nothing is left of it when it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from transom.core.delta import Delta
from transom.kernels.kernel import Step
from transom.pipeline.agenda import Brought
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Part, PartState
from transom.pipeline.stage import Stage
from transom.plan.catalogue import Catalogue
from transom.plan.options import time_settings
from transom.plan.sharing import SharedJoin
from transom.planner.fingerprint import fingerprint
from transom.planner.operator import Operator
from transom.planner.sharing import share
from transom.planner.sharing_shape import Sharable

PAIRS: Final = "pairs"
SIDES: Final = ("left", "right")


@dataclass(frozen=True)
class Member:
    """A query of a group: what it is called, what it asks of the join, and the form of its answer."""

    name: str
    asked: Sharable
    emit: str


@dataclass
class BranchState:
    """`begin`: its time begins there, and it sees rows from there on; None: from the first row on, all of them.

    `before` has what had become of the rows of each input when it came: used, late, rejected.
    """

    begin: int | None
    part: PartState
    emit: Any
    rows_out: int = 0
    before: dict[str, list[int]] = field(default_factory=dict)


class Branch:
    """A query on a shared join, from its `Narrow` on."""

    def __init__(self, member: Member, catalogue: Catalogue, begin: int | None) -> None:
        self.member = member
        self._catalogue = catalogue
        self.tick, self._fixed_origin = time_settings(catalogue)
        shared = share([member.asked], catalogue, [begin])
        self.root = shared.roots[0]
        assert isinstance(shared.trunk.node, SharedJoin)
        self._places = shared.trunk.node.places
        below = {id(operator) for operator in shared.trunk.walk()}
        self.operators = [operator for operator in self.root.walk() if id(operator) not in below]
        narrow = self.operators[0]
        named = {id(shared.trunk): PAIRS, **{id(side): SIDES[i] for i, side in enumerate(shared.trunk.inputs)}}
        ports = {(id(narrow), place): named[id(child)] for place, child in enumerate(narrow.inputs)}
        self.part = Part(self.operators, ports, catalogue, self.tick, whole=True)
        self._counted = [port for port in ports.values() if port != PAIRS]
        output = OutputWriter.of(self.root, member.emit)
        self.emit_name = output.name
        self.output_schema = output.schema
        self._stage = Stage(self.part, output, self.root)
        self.state = BranchState(begin, self.part.start(), output.start())
        self.read: tuple[int, ...] = ()

    def read_from(self, trunk: Operator) -> None:
        """The join has the columns of this operator from now on."""
        assert isinstance(trunk.node, SharedJoin)
        places = trunk.node.places
        self.read = (*(places.index(place) for place in self._places), len(places))

    def step(self, pairs: Delta, given: Mapping[str, Delta], step: Step, last_used: int) -> pa.RecordBatch:
        """The rows of its answer to pairs in the columns of `read`. Of the step only the times are taken."""
        state = self.state
        origin = step.origin if state.begin is None else state.begin
        own = Step(step.before, step.upto, origin, state.part.holders)
        brought: dict[str, Brought] = {port: given[port] for port in self._counted}
        brought[PAIRS] = pairs
        rows = self._stage.advance(state, brought, own, last_used).rows
        assert rows is not None
        return rows

    @property
    def due(self) -> int:
        """As `Stage.due`."""
        return self._stage.due(self.state)

    @cached_property
    def fingerprint(self) -> str:
        """Names the query, whatever others there are and whenever it came."""
        (root,) = share([self.member.asked], self._catalogue, [None]).roots
        return fingerprint(list(root.walk()), self.emit_name, self.tick, self._fixed_origin)
