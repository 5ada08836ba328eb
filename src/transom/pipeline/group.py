"""Queries that share a join, running as one: rows come in once, the join is made once, each query narrows it.

So do queries that share any other part, which each reads as it is; there nobody comes, and who goes leaves it as it is.

Queries come and go between two steps. The join keeps the widest windows and the columns that those which are there ask
for; its memory is migrated. A query that comes begins at the progress that has been reached: it sees rows from
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
from transom.kernels.shared_join.node import CountedWindow, SharedJoin
from transom.pipeline import registry
from transom.pipeline.admission import Ledger, RejectedRows
from transom.pipeline.consumer import PAIRS, Consumer, ConsumerSpec, outputs_of
from transom.pipeline.consumer_runner import ConsumerRunner, ConsumerState, picked
from transom.pipeline.driver import Pipeline
from transom.pipeline.engine import NOTHING_REJECTED, Emit, OperatorState
from transom.pipeline.input_gates import InputGatesState
from transom.pipeline.migration import KeptNote, kept_by, migrated
from transom.pipeline.part import PartState, owned
from transom.pipeline.scheduled_state import SCHEDULED_CLASSES
from transom.pipeline.stage import Stage
from transom.plan.catalogue import Catalogue
from transom.planner.fingerprint import of_another_plan
from transom.planner.sharing import NOT_COUNTED, Sides, shared_subplan
from transom.state import codec


@dataclass
class GroupState:
    """Everything that a restart needs; names and fingerprints are those of the consumers."""

    part: PartState
    gates: InputGatesState
    kept: list[KeptNote]
    names: list[str]
    fingerprints: list[str]
    runners: list[ConsumerState]
    static: dict[str, list[pa.RecordBatch]]
    static_ledgers: dict[str, Ledger]


GROUP_CLASSES: Final[tuple[type, ...]] = (
    *registry.STATE_CLASSES,
    *SCHEDULED_CLASSES,
    GroupState,
    KeptNote,
    ConsumerState,
)
"""The closed list of what a saved group may hold."""


def to_nobody(index: int, rows: pa.RecordBatch) -> None:
    """The answers are dropped."""


class GroupPipeline:
    """Queries on one join. The `subplan` takes the rows in and makes the join; it is not advanced by itself."""

    def __init__(self, specs: Sequence[ConsumerSpec], catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.rejected_rows: Mapping[str, RejectedRows] = NOTHING_REJECTED
        """The changes of tables that the last step rejected; streams reject rows when they come."""
        self.runners = [ConsumerRunner(Consumer(spec, catalogue)) for spec in specs]
        self._counted = NOT_COUNTED
        self._halfway = False
        self._arrange()

    def advance(self, emit_rows: Emit = to_nobody) -> bool:
        """Go to the present progress, and give each query what came out for it; whether time or work went on.

        Where a query or `emit_rows` fails, some queries have made the step and others have not: it cannot be gone on
        from there, nor be saved.
        """
        assert not self._halfway, "a step has failed halfway"
        self._halfway = True
        went_on = self._step(emit_rows)
        self._halfway = False
        if went_on:
            self.subplan.part.answered()
            for runner in self.runners:
                runner.part.answered()
        return went_on

    def _step(self, emit_rows: Emit) -> bool:
        subplan = self.subplan
        next_step = subplan.gates.next_step()
        if next_step is None:
            self.rejected_rows = subplan.gates.reject_unbegun()
            return False
        before, frontier, origin = next_step
        step = Step(before, frontier, origin, subplan.state.part.open_ids, last_row=subplan.gates.last_row)
        given: dict[str, Delta] = {}
        advanced, self.rejected_rows = subplan.step_stage(Stage(subplan.part), step)
        deltas = advanced.deltas
        for channel, operator in outputs_of(subplan.root).items():
            delta = deltas[subplan.part.number[id(operator)]]
            assert isinstance(delta, Delta)
            given[channel] = delta
        last_used = subplan.gates.last_used
        wanted = {runner.read for runner in self.runners}
        pairs = {columns: picked(given[PAIRS], columns) for columns in wanted}
        slides = subplan.slides if frontier == FOREVER else {}  # nobody asks where slides end before
        for index, runner in enumerate(self.runners):
            emit_rows(index, runner.step(pairs[runner.read], given, step, last_used, slides))
        subplan.state.gates.frontier = frontier
        return True

    @property
    def holds_rows(self) -> bool:
        return any(runner.stage.holds(runner.state) for runner in self.runners)

    def flush(self, emit_rows: Emit, only: str | None = None) -> None:
        for index, runner in enumerate(self.runners):
            if only in (None, runner.spec.name) and (rows := runner.stage.flush(runner.state)) is not None:
                emit_rows(index, rows)

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, spec: ConsumerSpec) -> ConsumerRunner:
        """A query that sees rows from the progress on. It is planned, and the join; nobody else is."""
        runner = ConsumerRunner(Consumer(spec, self._catalogue, self.subplan.state.gates.frontier))
        runner.state.before = _become(self.subplan.state.gates)
        self.runners.append(runner)
        self._arrange_anew()
        return runner

    def remove(self, name: str) -> None:
        """One goes; the last one must stay."""
        self.runners = [runner for runner in self.runners if runner.spec.name != name]
        if isinstance(self.subplan.root.node, SharedJoin):  # the join may keep less then
            self._arrange_anew()

    def _arrange(self) -> None:
        """A shared sub-plan for the consumers that are there."""
        subplan = shared_subplan([runner.spec.request for runner in self.runners], self._catalogue, self._counted)
        self.subplan = Pipeline(subplan, self._catalogue, read_by_others=True)
        self._counted = _counted(subplan)
        for runner in self.runners:
            runner.read_from(subplan)

    def _arrange_anew(self) -> None:
        before = self.subplan
        before.drain()
        self._arrange()
        self._adopt(before.state.gates, before.state.part, kept_by(before.root))
        before.close()

    def _adopt(self, gates: InputGatesState, part: PartState, kept: Sequence[KeptNote]) -> None:
        """Go on with the memory of a shared sub-plan that kept this."""
        subplan = self.subplan
        subplan.state.gates = subplan.gates.state = gates
        subplan.state.whole.part = migrated(part, kept, subplan.root, subplan.part)

    # --- saving ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Nothing of a group lies outside its snapshot."""

    def saved(self) -> None:
        """A snapshot leaves nothing behind to be removed."""

    def drain(self) -> None:
        self.subplan.drain()
        for runner in self.runners:
            runner.part.drain()

    def close(self) -> None:
        self.subplan.close()
        for runner in self.runners:
            runner.part.close()

    def snapshot(self) -> bytes:
        """The whole memory of the group between two steps, and who is in it."""
        if self._halfway:
            raise CheckpointError(
                "a step has failed halfway, and cannot be saved", remedy="resume from the checkpoint before it"
            )
        self.drain()
        return codec.encode(
            GroupState(
                self.subplan.state.part,
                self.subplan.state.gates,
                kept_by(self.subplan.root),
                [runner.spec.name for runner in self.runners],
                [runner.consumer.fingerprint for runner in self.runners],
                [runner.state for runner in self.runners],
                self.subplan.state.static,
                self.subplan.state.static_ledgers,
            )
        )

    def restore(self, data: bytes) -> None:
        """Go on where `snapshot` was taken. Queries that are new come in there, those that are here no more have left.

        A query of the same name must be the same.
        """
        with codec.restoring():
            self._restore(codec.decode(data, GROUP_CLASSES))

    def _restore(self, saved: Any) -> None:
        states = dict(zip(saved.names, saved.runners, strict=True)) if isinstance(saved, GroupState) else {}
        if not states:
            raise of_another_plan()
        reads_as_it_is = self.runners[0].consumer.reads_as_it_is
        if reads_as_it_is != (not saved.kept) or (
            reads_as_it_is and states.keys() != {runner.spec.name for runner in self.runners}
        ):
            raise of_another_plan()
        if not reads_as_it_is and _kind_of_join(saved.part) is not _kind_of_join(self.subplan.state.part):
            raise of_another_plan()  # its work was put in order, or was not, or the join was another
        marks = dict(zip(saved.names, saved.fingerprints, strict=True))
        self.close()
        self._counted = tuple(side.length is None for side in saved.kept)  # type: ignore[assignment]
        for index, runner in enumerate(self.runners):
            state = states.get(runner.spec.name)
            begin = saved.gates.frontier if state is None else state.begin
            if begin != runner.consumer.begin:
                runner = self.runners[index] = ConsumerRunner(replace(runner.consumer, begin=begin))
            if state is None:
                runner.state = runner.start()
                runner.state.before = _become(saved.gates)
            elif marks[runner.spec.name] != runner.consumer.fingerprint:
                raise of_another_plan()
            else:
                runner.state = state
        self._arrange()
        saved.part.open_ids.check_owned(list(owned(saved.part.operators)))
        self.subplan.gates.check(saved.gates)
        self.subplan.check_tables(saved.static)
        self.subplan.state.static, self.subplan.state.static_ledgers = saved.static, saved.static_ledgers
        if reads_as_it_is:
            self.subplan.part.check(saved.part)
        for runner in self.runners:
            runner.check(runner.state)
        self._adopt(saved.gates, saved.part, saved.kept)
        self._halfway = False

    @property
    def finished(self) -> bool:
        return self.subplan.state.gates.frontier == FOREVER

    @property
    def at_rest(self) -> bool:
        """Whether nothing waits to be done, or to be emitted."""
        return True

    @property
    def timer_passed(self) -> bool:
        next_timer = min([self._subplan_timer, *(runner.next_timer for runner in self.runners)])
        return self.subplan.gates.next_timer(next_timer) < self.subplan.progress

    @property
    def _subplan_timer(self) -> int:
        return self.subplan.part.next_timer(self.subplan.state.part)

    @property
    def full(self) -> bool:
        """Whether no more rows are to be brought for now."""
        return False

    def catch_up(self, emit_rows: Emit) -> bool:
        """What waits is done in steps."""
        return False

    def progress_of(self, name: str) -> int | None:
        return self.subplan.progress

    def operators_of(self, name: str) -> Iterator[OperatorState]:
        runner = self._runner(name)
        yield from self.subplan.operator_states()
        yield from runner.part.states(runner.state.part, runner.operators)

    def rows_out(self, name: str) -> int:
        return self._runner(name).state.rows_out

    def output_key(self, name: str) -> tuple[str, ...] | None:
        return self._runner(name).consumer.output_key

    def used_before(self, name: str) -> Mapping[str, list[int]]:
        return self._runner(name).state.before

    def _runner(self, name: str) -> ConsumerRunner:
        return next(runner for runner in self.runners if runner.spec.name == name)


def _become(gates: InputGatesState) -> dict[str, list[int]]:
    """What has become of the rows of each input so far."""
    ledgers = {name: state.ledger for name, state in gates.inputs.items()}
    return {name: [ledger.used, ledger.late, ledger.rejected] for name, ledger in ledgers.items()}


def _kind_of_join(part: PartState) -> type:
    """The class of what the join remembers."""
    return type(part.operators[-1][0])


def _counted(subplan: Operator) -> Sides:
    if not isinstance(subplan.node, SharedJoin):
        return NOT_COUNTED
    left, right = (isinstance(child.node, CountedWindow) for child in subplan.inputs)
    return left, right
