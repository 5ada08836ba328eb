"""Queries that share a join, running as one: rows come in once, the join is made once, each query narrows it.

Queries come and go between two steps. The join keeps the widest windows and the columns that those which are there ask
for; its memory is carried over. A query that comes begins at the progress that has been reached: it sees rows from
there on, and its answer is that of the query alone with its origin set to there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from transom.core.delta import Delta
from transom.core.errors import CheckpointError
from transom.core.time import FOREVER
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator
from transom.kernels.shared_join.node import CountedWindow
from transom.pipeline import registry
from transom.pipeline.branch import Branch, BranchState, picked
from transom.pipeline.consumer import PAIRS, SIDES, Consumer, Member
from transom.pipeline.doors import DoorsState
from transom.pipeline.driver import Pipeline
from transom.pipeline.engine import NOTHING_REFUSED, OperatorState, Tell
from transom.pipeline.migration import KeptNote, kept_by, migrated
from transom.pipeline.part import PartState, owned
from transom.pipeline.scheduled_state import SCHEDULED_CLASSES
from transom.pipeline.stage import Stage
from transom.plan.catalogue import Catalogue
from transom.planner.fingerprint import of_another_plan
from transom.planner.sharing import NOT_COUNTED, Sides, shared_join
from transom.state import codec


@dataclass
class GroupState:
    """Everything that a restart needs; names and fingerprints are those of the branches."""

    part: PartState
    doors: DoorsState
    kept: list[KeptNote]
    names: list[str]
    fingerprints: list[str]
    branches: list[BranchState]


GROUP_CLASSES: Final[tuple[type, ...]] = (
    *registry.STATE_CLASSES,
    *SCHEDULED_CLASSES,
    GroupState,
    KeptNote,
    BranchState,
)
"""The closed list of what a saved group may hold."""


def to_nobody(place: int, rows: pa.RecordBatch) -> None:
    """The answers are dropped."""


class GroupPipeline:
    """Queries on one join. The `trunk` takes the rows in and makes the join; it is not advanced by itself."""

    refused = NOTHING_REFUSED
    """Streams refuse rows when they come."""

    def __init__(self, members: Sequence[Member], catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.branches = [Branch(Consumer(member, catalogue)) for member in members]
        self._counted = NOT_COUNTED
        self._halfway = False
        self._arrange()

    def advance(self, tell: Tell = to_nobody) -> bool:
        """Go to the present progress, and tell each query what came out for it; whether time or work went on.

        Where a query or `tell` fails, some queries have made the step and others have not: it cannot be gone on from
        there, nor be saved.
        """
        assert not self._halfway, "a step has failed halfway"
        self._halfway = True
        went_on = self._step(tell)
        self._halfway = False
        if went_on:
            self.trunk.part.answered()
            for branch in self.branches:
                branch.part.answered()
        return went_on

    def _step(self, tell: Tell) -> bool:
        trunk = self.trunk
        found = trunk.doors.next_step()
        if found is None:
            return False
        before, upto, origin = found
        step = Step(before, upto, origin, trunk.state.part.holders, last_row=trunk.doors.last_row)
        brought = {name: trunk.doors.release(name, upto) for name in trunk.inputs}
        given: dict[str, Delta] = {}
        deltas = Stage(trunk.part).advance(trunk.state.whole, brought, step, trunk.doors.last_used).deltas
        for port, operator in zip((PAIRS, *SIDES), (trunk.root, *trunk.root.inputs), strict=True):
            delta = deltas[trunk.part.number[id(operator)]]
            assert isinstance(delta, Delta)
            given[port] = delta
        last_used = trunk.doors.last_used
        wanted = {branch.read for branch in self.branches}
        pairs = {columns: picked(given[PAIRS], columns) for columns in wanted}
        for place, branch in enumerate(self.branches):
            tell(place, branch.step(pairs[branch.read], given, step, last_used))
        trunk.state.doors.upto = upto
        return True

    @property
    def holds_rows(self) -> bool:
        return any(branch.stage.holds(branch.state) for branch in self.branches)

    def flush(self, tell: Tell, only: str | None = None) -> None:
        for place, branch in enumerate(self.branches):
            if only in (None, branch.member.name) and (rows := branch.stage.flush(branch.state)) is not None:
                tell(place, rows)

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, member: Member) -> Branch:
        """A query that sees rows from the progress on. It is planned, and the join; nobody else is."""
        branch = Branch(Consumer(member, self._catalogue, self.trunk.state.doors.upto))
        branch.state.before = _become(self.trunk.state.doors)
        self.branches.append(branch)
        self._arrange_anew()
        return branch

    def remove(self, name: str) -> None:
        """One goes; the last one must stay."""
        self.branches = [branch for branch in self.branches if branch.member.name != name]
        self._arrange_anew()

    def _arrange(self) -> None:
        """A trunk for the branches that are there."""
        trunk = shared_join([branch.member.asked for branch in self.branches], self._catalogue, self._counted)
        self.trunk = Pipeline(trunk, self._catalogue, "lifetimes")
        self._counted = _counted(trunk)
        for branch in self.branches:
            branch.read_from(trunk)

    def _arrange_anew(self) -> None:
        before = self.trunk
        before.settle()
        self._arrange()
        self._adopt(before.state.doors, before.state.part, kept_by(before.root))
        before.close()

    def _adopt(self, doors: DoorsState, part: PartState, kept: Sequence[KeptNote]) -> None:
        """Go on with the memory of a trunk that kept this."""
        trunk = self.trunk
        trunk.state.doors = trunk.doors.state = doors
        trunk.state.whole.part = migrated(part, kept, trunk.root, trunk.part)

    # --- saving ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Nothing of a group lies outside its snapshot."""

    def saved(self) -> None:
        """As `begin`."""

    def settle(self) -> None:
        self.trunk.settle()
        for branch in self.branches:
            branch.part.settle()

    def close(self) -> None:
        self.trunk.close()
        for branch in self.branches:
            branch.part.close()

    def snapshot(self) -> bytes:
        """The whole memory of the group between two steps, and who is in it."""
        if self._halfway:
            raise CheckpointError(
                "a step has failed halfway, and cannot be saved", remedy="go on from the checkpoint before it"
            )
        self.settle()
        return codec.encode(
            GroupState(
                self.trunk.state.part,
                self.trunk.state.doors,
                kept_by(self.trunk.root),
                [branch.member.name for branch in self.branches],
                [branch.consumer.fingerprint for branch in self.branches],
                [branch.state for branch in self.branches],
            )
        )

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. Queries that are new come in there, those that are here no more have left.

        A query of the same name must be the same.
        """
        with codec.restoring():
            self._restore(codec.decode(data, GROUP_CLASSES))

    def _restore(self, saved: Any) -> None:
        known = dict(zip(saved.names, saved.branches, strict=True)) if isinstance(saved, GroupState) else {}
        if not known:
            raise of_another_plan()
        if type(saved.part.operators[-1][0]) is not type(self.trunk.state.part.operators[-1][0]):
            raise of_another_plan()  # its work was put in order, or was not, or the join was another
        marks = dict(zip(saved.names, saved.fingerprints, strict=True))
        self.close()
        self._counted = tuple(side.length is None for side in saved.kept)  # type: ignore[assignment]
        for place, branch in enumerate(self.branches):
            state = known.get(branch.member.name)
            begin = saved.doors.upto if state is None else state.begin
            if begin != branch.consumer.begin:
                branch = self.branches[place] = Branch(replace(branch.consumer, begin=begin))
            if state is None:
                branch.state = branch.start()
                branch.state.before = _become(saved.doors)
            elif marks[branch.member.name] != branch.consumer.fingerprint:
                raise of_another_plan()
            else:
                branch.state = state
        self._arrange()
        saved.part.holders.check_owned(list(owned(saved.part.operators)))
        self.trunk.doors.check(saved.doors)
        for branch in self.branches:
            branch.part.check(branch.state.part)
        self._adopt(saved.doors, saved.part, saved.kept)
        self._halfway = False

    @property
    def finished(self) -> bool:
        return self.trunk.state.doors.upto == FOREVER

    @property
    def at_rest(self) -> bool:
        """Whether nothing waits to be done, or to be told."""
        return True

    @property
    def is_due(self) -> bool:
        due = min([self._trunk_due, *(branch.due for branch in self.branches)])
        return self.trunk.doors.due(due) < self.trunk.progress

    @property
    def _trunk_due(self) -> int:
        return self.trunk.part.due(self.trunk.state.part)

    @property
    def full(self) -> bool:
        """Whether no more rows are to be brought for now."""
        return False

    def catch_up(self, tell: Tell) -> bool:
        """What waits is done in steps."""
        return False

    def progress_of(self, name: str) -> int | None:
        """What is before it is final in the answer of a query; None before its time has begun."""
        return self.trunk.progress

    def operators_of(self, name: str) -> Iterator[OperatorState]:
        branch = self._branch(name)
        yield from self.trunk.operator_states()
        yield from branch.part.states(branch.state.part, branch.operators)

    def rows_out(self, name: str) -> int:
        return self._branch(name).state.rows_out

    def output_key(self, name: str) -> tuple[str, ...] | None:
        return self._branch(name).consumer.output_key

    def used_before(self, name: str) -> Mapping[str, list[int]]:
        return self._branch(name).state.before

    def _branch(self, name: str) -> Branch:
        return next(branch for branch in self.branches if branch.member.name == name)


def _become(doors: DoorsState) -> dict[str, list[int]]:
    """What has become of the rows of each input so far."""
    ledgers = {name: state.ledger for name, state in doors.inputs.items()}
    return {name: [ledger.used, ledger.late, ledger.rejected] for name, ledger in ledgers.items()}


def _counted(trunk: Operator) -> Sides:
    left, right = (isinstance(child.node, CountedWindow) for child in trunk.inputs)
    return left, right
