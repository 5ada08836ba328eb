"""Standing queries in this process that share a join: their streams are read once, and each has its own sink.

A step reads one batch of the stream that holds progress back, and takes all of the queries as far as that allows.
Between two steps queries come and go, and the group can be saved, with who is in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from transom.connectors.connector import Source
from transom.core.time import BEGINNING, FOREVER
from transom.pipeline.branch import Member
from transom.pipeline.group import GroupPipeline
from transom.pipeline.memory import state_bytes, state_rows
from transom.pipeline.part import Part, PartState
from transom.pipeline.scheduled import ScheduledGroup
from transom.plan.catalogue import StreamDefinition
from transom.plan.options import OPTIONS
from transom.planner.fingerprint import of_another_plan
from transom.planner.operator import Operator
from transom.planner.scheduling import Schedule, schedule_of
from transom.planner.sharing_shape import Sharable
from transom.program.clock import Clock, RealClock
from transom.program.inputs import Definition
from transom.program.latency import Stopwatch
from transom.program.run import Ending, Order
from transom.program.status import InputStatus, OperatorStatus, Status
from transom.runtimes.local.intake import Intake, Reading
from transom.runtimes.local.member import LocalMember
from transom.runtimes.local.overload import overload_of
from transom.state import codec
from transom.state.checks import alike


class LocalGroup:
    """`orders` ask for the same join, as `asked` says of each."""

    def __init__(
        self,
        orders: Sequence[tuple[Order, Sharable]],
        open_source: Callable[[Definition], Source],
        *,
        ending: Ending = "end",
        clock: Clock | None = None,
    ) -> None:
        first, asked = orders[0]
        catalogue = first.planned.catalogue
        self.join = asked.join
        clock = clock or RealClock()
        members = [_member(order, asked) for order, asked in orders]
        schedule = schedule_of(asked, catalogue)
        self.pipeline: GroupPipeline
        if isinstance(schedule, Schedule):
            self.pipeline = ScheduledGroup(members, catalogue, schedule, clock.now)
        else:
            self.pipeline = GroupPipeline(members, catalogue)
        definitions: dict[str, Definition] = {}
        for name in self.pipeline.trunk.inputs:
            definition = catalogue.relations[name]
            assert isinstance(definition, StreamDefinition)
            definitions[name] = definition
        rows: int = catalogue.options.get("batch_rows", OPTIONS["batch_rows"].default)
        if isinstance(schedule, Schedule):
            rows = min(rows, schedule.buffer)
        self._intake = Intake(definitions, open_source, self._refuse, rows=rows, ending=ending, clock=clock)
        self.members = [self._made(order) for order, _ in orders]
        self._steps = 0
        self._stepping = threading.RLock()
        self._written_upto = FOREVER
        """Within a step, what was final before it: what follows is not with the sinks yet."""
        stamped = any(self.pipeline.trunk.doors.stamped(name) for name in definitions)
        self._stopwatch = Stopwatch() if stamped else None

    # --- running -----------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """All input has been read to its end, and everything that follows from it is out."""
        return self.pipeline.finished or (self._intake.complete and self.pipeline.at_rest)

    @property
    def done(self) -> bool:
        """Whether there is nothing more for this run to do, once a step has found nothing."""
        return self.finished or (self._intake.exhausted and self.pipeline.at_rest)

    def step(self) -> bool:
        """Read one batch and go on; False when there is nothing to do: for good, or for now."""
        if self.finished:
            return False
        for member in self.members:
            member.open()
        self._written_upto = self.pipeline.trunk.progress
        try:
            return self._step()
        finally:
            self._written_upto = FOREVER

    def _step(self) -> bool:
        read = self.pipeline.full  # then there is work enough
        while not read and (name := self._intake.next_input(self.pipeline.trunk)) is not None:
            batch = self._intake.read(name)
            with self._stepping:
                read = self._intake.take(name, batch, self.pipeline.trunk, self._stopwatch)
        went_on = self._advance()
        self._steps += read or went_on
        return read or went_on

    def _advance(self) -> bool:
        with self._stepping:
            self._intake.leave_idle_behind(self.pipeline.trunk)
            went_on = self.pipeline.advance(self._write)
        if went_on and self._stopwatch is not None and self.pipeline.at_rest:
            self._stopwatch.leave()
        return went_on

    def _write(self, place: int, rows: pa.RecordBatch) -> None:
        """In the middle of a step, when nobody works on the states: whoever asks does not wait for a sink."""
        self._stepping.release()
        try:
            self.members[place].write(rows)
        finally:
            self._stepping.acquire()

    def _refuse(self, rows: pa.RecordBatch) -> None:
        """To the side of every query; to one that several have once."""
        sides = {id(member.side.sink): member.side for member in self.members if member.side is not None}
        for side in sides.values():
            side.write(rows)

    def close(self) -> None:
        """Everything that was written is seen."""
        try:
            self.pipeline.settle()
        finally:
            self.pipeline.close()
        for member in self.members:
            member.close()

    def abandon(self) -> None:
        """What was written since it was last shown is forgotten."""
        self.pipeline.close()
        for member in self.members:
            member.abandon()

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, order: Order, asked: Sharable) -> LocalMember:
        """A query on the same join, between two steps: it sees rows from the progress on that has been reached."""
        with self._stepping:
            self.pipeline.add(_member(order, asked))
            member = self._made(order)
            self.members.append(member)
        return member

    def remove(self, name: str) -> LocalMember:
        """One of several queries goes; what it has written is complete then."""
        with self._stepping:
            member = next(each for each in self.members if each.name == name)
            self.members.remove(member)
            self.pipeline.remove(name)
        member.close()
        return member

    def _made(self, order: Order) -> LocalMember:
        branch = next(each for each in self.pipeline.branches if each.member.name == order.name)
        return LocalMember(order, branch, lambda: self.finished, self._status)

    # --- status ------------------------------------------------------------------------------------------------------

    def _status(self, member: LocalMember) -> Status:
        """How a query is doing; any thread may ask, and waits for a step that is under way, but not for a source."""
        with self._stepping:
            self.pipeline.settle()
            trunk, branch = self.pipeline.trunk, member.branch
            upto = self.pipeline.progress_of(member.name)
            operators = _kept(trunk.part, trunk.state.part, list(trunk.root.walk()))
            operators += _kept(branch.part, branch.state.part, branch.operators)
            return Status(
                name=member.name,
                inputs=tuple(self._input_status(name, member) for name in trunk.names),
                operators=tuple(OperatorStatus(number, *each) for number, each in enumerate(operators, 1)),
                progress=BEGINNING if upto is None else min(upto, self._written_upto),
                held_back_by=None if self.finished else trunk.held_back_by,
                rows_out=branch.state.rows_out,
                steps=self._steps,
                finished=self.finished,
                latency=None if self._stopwatch is None else self._stopwatch.latency,
                overload=overload_of(self.pipeline, member.name),
            )

    def _input_status(self, name: str, member: LocalMember) -> InputStatus:
        """What became of the rows since the query came."""
        ledger, reading = self.pipeline.trunk.ledger(name), self._intake.readings[name]
        used, late, rejected = member.branch.state.before.get(name, (0, 0, 0))
        return InputStatus(
            name=self._intake.definitions[name].name,
            rows_in=ledger.rows_in - used - late - rejected,
            used=ledger.used - used,
            late=ledger.late - late,
            rejected=ledger.rejected - rejected,
            waiting=ledger.waiting,
            watermark=self.pipeline.trunk.watermark(name),
            ended=reading.complete,
            reasons=dict(reading.reasons),
        )

    # --- saving ------------------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """Everything that another process needs to go on; what was written is not shown yet."""
        sinks = {member.name: [each.prepare() for each in member.sinks] for member in self.members}
        saved = {
            "group": np.frombuffer(self.pipeline.snapshot(), np.uint8),
            "read": self._intake.readings,
            "sinks": sinks,
            "latest": {member.name: member.latest for member in self.members},
            "steps": self._steps,
        }
        return codec.encode(saved)

    def show(self) -> None:
        """What was written until now is seen."""
        for member in self.members:
            member.show()

    def begin(self) -> None:
        """There is no checkpoint to go on from."""

    def restore(self, data: bytes) -> None:
        """Go on where `save` was called, by the same queries; new ones come in there, others have left."""
        saved: Any = codec.decode(data, (Reading,))
        if not isinstance(saved, dict) or set(saved.get("read", ())) != set(self._intake.readings):
            raise of_another_plan()
        with codec.restoring():
            self.pipeline.restore(saved["group"].tobytes())
            alike(dict.fromkeys(self._intake.readings, Reading()), saved["read"])
            self._intake.go_on(saved["read"])
            self._steps = int(saved["steps"])
            for member, branch in zip(self.members, self.pipeline.branches, strict=True):
                member.branch = branch
                member.go_on(saved["sinks"].get(member.name), saved["latest"].get(member.name))


def _member(order: Order, asked: Sharable) -> Member:
    return Member(order.name, asked, order.emit)


def _kept(part: Part, state: PartState, operators: Sequence[Operator]) -> list[tuple[Any, ...]]:
    """What the operators have done, in this order, as an OperatorStatus has it."""
    found = []
    for operator in operators:
        place = part.number[id(operator)]
        counters, memory = state.counters[place], state.operators[place]
        found.append(
            (
                operator.kind,
                operator.tactic.name,
                counters.rows_in,
                counters.rows_out,
                counters.ends_out,
                state_bytes(memory),
                counters.seconds,
                state_rows(memory),
            )
        )
    return found
