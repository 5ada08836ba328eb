"""One bucket of one fragment: the same operators behind the same doors as in a pipeline, fed with cargo.

Every bucket hears what all tasks saw of all inputs, so every bucket knows by itself how far time has come, and comes
to the same result; a step takes all buckets of all fragments from the last progress to the new one. What it gives goes
to the buckets of the next fragments, and from the last fragment to the sink.

Where the pairs of a shared join are made, the queries that share it run beside it, each as far as it can without rows
of other buckets, and with a memory of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, StreamDelta, no_int64s
from transom.core.errors import CheckpointError, SourceError
from transom.core.time import BEGINNING, FOREVER
from transom.kernels.columns import empty_batch
from transom.kernels.decisions import Decisions
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator
from transom.pipeline.admission import FIT, Codes, Input, Looked, Refused
from transom.pipeline.agenda import Brought
from transom.pipeline.branch import Branch, picked
from transom.pipeline.bucket_state import BucketState
from transom.pipeline.bucket_status import bucket_status
from transom.pipeline.cargo import CargoPart, Parcel
from transom.pipeline.consumer import PAIRS, SIDES
from transom.pipeline.doors import Doors, came_after_the_end
from transom.pipeline.exchange import FeedState, fed, static_rows
from transom.pipeline.feed import unpacked
from transom.pipeline.layout import SHARED, Layout, Port
from transom.pipeline.memory import StageMemory
from transom.pipeline.merge import in_order, merged, value_ranks
from transom.pipeline.outgoing import Outgoing, status_parcel
from transom.pipeline.output import OutputWriter
from transom.pipeline.part import Part, PartState
from transom.pipeline.partitions import Partition, Partitions
from transom.pipeline.routes import Routes
from transom.pipeline.seen import brief, digest, heard, unpacked_times
from transom.pipeline.side import count_reasons, refused_rows
from transom.pipeline.spilling import store_of
from transom.pipeline.stage import Advanced, Stage
from transom.pipeline.way import pass_way
from transom.plan.catalogue import TableDefinition
from transom.planner.fragments import ANSWER
from transom.state import codec
from transom.state.checks import alike, need

_JUDGED = ("rows", "unwanted", "unfit")


SLICE_ROWS: Final = 1 << 15
"""So many rows of an input are taken in one step, if there is no reason to take more."""


class Bucket:
    """Logic of a bucket; `state` is replaced as a whole by whoever keeps it. `home` is its room on disk."""

    def __init__(self, layout: Layout, fragment: int, bucket: int, home: str | None = None) -> None:
        self.layout = layout
        self.fragment = layout.fragments[fragment - 1]
        self.bucket = bucket
        self.level = layout.level[fragment]
        self.ports = {port.name: port for port in layout.ports_into(fragment)}
        ports = {(id(p.exchange.into), p.exchange.place): name for name, p in self.ports.items()}
        store, places = store_of(layout.catalogue, home, referred=False), layout.buckets_of(fragment)
        self.spread = None if layout.spread is None else Partitions(layout.spread, layout.catalogue)
        operators = self.fragment.operators if self.spread is None else ()
        finals = layout.finals
        self.part = Part(operators, ports, layout.catalogue, layout.tick, store=store, places=places, finals=finals)
        self.consumer = consumer = layout.consumer_of(fragment)
        self.query = SHARED if consumer is None else consumer.member.name
        """Whose it is."""
        known = layout.operators if consumer is None else consumer.operators
        self.numbers = {id(operator): i for i, operator in enumerate(known)}
        self._sends = layout.ports_from(fragment)
        root, emit = (layout.root, layout.emit) if consumer is None else (consumer.root, consumer.member.emit)
        answers = any(o is root for o in operators) and not self._sends  # partitions write their own
        answers = answers or any(p.exchange.place == ANSWER for p in self.ports.values())
        answers = answers and (consumer is not None or not layout.consumers)
        output = OutputWriter.of(root, emit) if answers else None
        self._stage = Stage(self.part, output, root if answers and operators else None)
        joins = bool(layout.consumers) and any(o is layout.root for o in operators)
        self.beside = {
            each.member.name: Branch(each, layout.buckets)
            for each in layout.consumers
            if joins and each.beside(layout.buckets)
        }
        self._consumers = {each.member.name: each for each in layout.consumers}
        self._columns = {each.member.name: each.columns_in(layout.root) for each in layout.consumers}
        self.source_of: dict[str, str] = {}
        inputs: dict[str, Input] = {}
        for source, definition in layout.sources.items():
            if definition.time is None:
                continue
            # A door for every port; a stream that others read has one here, too, for the sake of its time.
            mine = [p.name for p in layout.ports_of(source) if p.fragment == fragment] or [source]
            for name in mine:
                inputs[name] = Input(definition, layout.tick, layout.origin)
                self.source_of[name] = source
        self.doors = Doors(inputs, layout.tick, layout.origin, self.source_of)
        self.state = self.start()
        self.decisions = Decisions()
        self._nothing: dict[pa.DataType, pa.Array] = {}

    def start(self) -> BucketState:
        """The memory of a bucket before its first step."""
        doors = Doors(self.doors.inputs, self.layout.tick, self.layout.origin).state
        feeds = {name: FeedState() for name, port in self.ports.items() if port.exchange.fragment is not None}
        static: dict[str, list[pa.RecordBatch]] = {
            name: [] for name, port in self.ports.items() if self._is_static(port)
        }
        output = self._stage.output
        emit = None if output is None else output.start()
        consumers = {key: branch.start() for key, branch in self.beside.items()}
        routes = {port.called: Routes() for port in self._sends}
        stages = [] if self.spread is None else self.spread.start()
        return BucketState(self.part.start(), doors, emit, feeds, static, consumers, routes, stages=stages)

    def restored(self, data: bytes, classes: Iterable[type]) -> BucketState:
        """A memory that was saved; CheckpointError where it cannot be one of this bucket."""
        with codec.restoring():
            found: BucketState = codec.decode(data, classes)
            alike(self.start(), found)
            self.part.check(found.part, found.feeds.values())
            self.doors.check(found.doors)
            for port in self._sends:
                found.routes[port.called].check_partitions(self.layout.buckets_of(port.fragment))
            need(found.consumers.keys() == self.beside.keys())
            for key, branch in self.beside.items():
                branch.part.check(found.consumers[key].part)
            for partition, memory in self._partitions(found):
                partition.stage.part.check(memory.part, memory.feeds.values())
            return found

    def step(self, parcels: Iterable[Parcel], decided: Sequence[Any] = ()) -> list[Parcel]:
        """Everything that came for this bucket in a batch; what goes on from here.

        `decided` is what was decided in the step if it is taken again; after it, `decisions` are those of the step.
        """
        self.decisions = Decisions(decided)
        parts = sorted((heard(part) for parcel in parcels for part in parcel.opened()), key=_place)
        self.doors.state = self.state.doors
        self.part.attach(self.state.part)
        for partition, memory in self._partitions(self.state):
            partition.stage.part.attach(memory.part)
        self.state.steps += 1
        out = Outgoing(self.layout, self.bucket, self.level, self.state.routes)
        self._admit(parts, out)
        self._pass_on(parts, out)
        found = self.doors.next_step()
        if found is None:
            for name, refused in self.doors.refuse_unbegun().items():
                self._refuse(name, refused, out)
        else:
            self._advance(*found, parts, out)
            self._flush(out)
        for part in self._parts:
            part.settle()  # the state is written next
        return out.parcels()

    def status(self) -> Parcel:
        """How it is doing, for the driver; to tell it takes a walk through all that is kept."""
        return status_parcel(self.bucket, bucket_status(self))

    def close(self) -> None:
        """No thread is left behind."""
        for part in self._parts:
            part.close()
        if self.spread is not None:
            self.spread.close()

    @property
    def _parts(self) -> list[Part]:
        within = [] if self.spread is None else [partition.stage.part for partition in self.spread.all]
        return [self.part, *within, *(branch.part for branch in self.beside.values())]

    def _partitions(self, state: BucketState) -> Iterable[tuple[Partition, StageMemory]]:
        """Those within this bucket, with what they remember."""
        return () if self.spread is None else zip(self.spread.all, state.stages, strict=True)

    def hosted(self, state: BucketState) -> Iterator[tuple[Part, PartState]]:
        """The operators of the plan that are here, as often as there are partitions, and what they remember."""
        yield self.part, state.part
        for partition, memory in self._partitions(state):
            yield partition.stage.part, memory.part

    @property
    def wake(self) -> int | None:
        """When, by the clock, something comes of silence here, if the run follows its inputs (see `Doors.wake`)."""
        self.doors.state = self.state.doors
        due = self._stage.due(self.state)
        for partition, memory in self._partitions(self.state):
            due = min(due, partition.stage.due(memory))
        for key, branch in self.beside.items():
            branch.state = self.state.consumers[key]
            due = min(due, branch.due)
        return self.doors.wake(self.doors.due(due))

    @property
    def ended(self) -> bool:
        """Whether nothing more can come of any input that has an end."""
        return all(known.ended for known in self.state.doors.inputs.values())

    @property
    def frontier(self) -> dict[str, int | None]:
        """How far time has come, of the answer and of every input."""
        self.doors.state = self.state.doors
        watermarks = {f"'{self.source_of[name]}'": self.doors.watermark(name) for name in self.doors.inputs}
        return {"the answer": self.state.doors.upto, **watermarks}

    # --- what came ---------------------------------------------------------------------------------------------------

    def _admit(self, parts: Sequence[CargoPart], out: Outgoing) -> None:
        """Stretch by stretch, in the order of the source."""
        rows: dict[tuple[str, int], list[CargoPart]] = defaultdict(list)
        for part in parts:
            if part.kind in _JUDGED:
                rows[part.about["port"], part.about["sender"]].append(part)
        seen = [part for part in parts if part.kind == "seen"]
        self._refuse_after_the_end(seen)
        stamps: dict[tuple[str, int], int] = {}
        for name in self.doors.inputs:
            for about in (part.about for part in seen if part.about["source"] == self.source_of[name]):
                sender = about["sender"]
                if self.doors.stamped(name):
                    first = self._stamp(name, about, stamps)
                    for part in rows[name, sender]:
                        self._admit_stamped(name, part, first)
                    continue
                for part in rows[name, sender]:
                    self._admit_rows(name, part, out)
                self._begin(name, about)
                if self.source_of[name] not in self.layout.unordered:
                    self._see(name, about)
        for name in self.doors.inputs:
            for part in seen:
                if part.about["source"] == self.source_of[name] and self.source_of[name] in self.layout.unordered:
                    self._see(name, part.about)
        for port in self.state.static:
            self.state.static[port] += [self._whole(port, p.rows)[0] for p in parts if p.about.get("port") == port]
        self._note_time(seen)
        if self.fragment.number == self.layout.accountant and self.bucket == 0:
            for part in seen:
                self._account(part.about)

    def _refuse_after_the_end(self, seen: Sequence[CargoPart]) -> None:
        """Time has passed the rows of an input that has ended; none may follow."""
        for name, source in self.source_of.items():
            if self.doors.state.inputs[name].ended:
                more = sum(part.about["rows_in"] for part in seen if part.about["source"] == source)
                if more:
                    raise came_after_the_end(f"stream '{self.layout.sources[source].name}'")

    def _begin(self, name: str, about: dict[str, Any]) -> None:
        """The query may begin with the earliest of the times told that is not late."""
        if self.doors.state.origin is not None:
            return
        if about["begun"]:
            raise CheckpointError(
                "time has not begun for a part of the query of which it is said that it has",
                remedy="put the checkpoint back from one copy as a whole, or start with an empty folder",
            )
        state, times = self.doors.state.inputs[name], unpacked_times(about["firsts"])
        watermark = self.doors.inputs[name].watermark(state)
        admitted = times[times >= watermark]
        if len(admitted):
            state.begin(int(admitted[0]))
        elif about["more"] and (state.first is None or watermark < state.first):  # else it begins no earlier with them
            raise SourceError(
                f"'{self.source_of[name]}' brings so many late rows that nobody can tell where time begins",
                remedy="SET origin = '..', or allow more disorder in WATERMARK FOR",
            )

    def _see(self, name: str, about: dict[str, Any]) -> None:
        state = self.doors.state.inputs[name]
        self.doors.inputs[name].leap_to(state, about["began"], about["leap"])
        state.see(about["greatest"])
        state.ended = state.ended or about["ended"]

    def _admit_rows(self, name: str, part: CargoPart, out: Outgoing) -> None:
        """Rows that a filter took away on their way, and unfit ones, are here to be judged, not to be kept."""
        values, t = self._whole(name, part.rows)
        codes: Codes = np.full(len(t), FIT, dtype=np.uint8)
        if part.kind == "unfit":
            assert part.rows is not None
            codes = part.rows.columns[-1].to_numpy()
        state = self.doors.state.inputs[name]
        if part.kind == "unwanted":
            state = replace(state, waiting=[])
        first = state.first
        refused = self.doors.inputs[name].admit(state, Looked(values, t, codes, None))
        state.first = first  # what the tasks saw decides, not what came here of it
        state.ledger.rows_in -= len(t)  # counted where all of it is
        if part.kind == "unwanted":
            unwanted = sum(len(waiting.t) for waiting in state.waiting)
            state.ledger.used += unwanted
            self._count(self.ports[name], self.ports[name].exchange.way[0], unwanted, 0)
        if refused is not None:
            self._refuse(name, refused, out)

    def _stamp(self, name: str, about: dict[str, Any], stamps: dict[tuple[str, int], int]) -> int:
        """The first stamp of a stretch, the same for all doors of its stream."""
        source, state = self.source_of[name], self.doors.state.inputs[name]
        state.ended = state.ended or about["ended"]
        if (source, about["sender"]) not in stamps:
            stamps[source, about["sender"]] = self.doors.stamp(about["rows_in"], about["now"] or 0)
        first = stamps[source, about["sender"]]
        if about["rows_in"]:
            state.begin(first)
            state.see(self.doors.state.clock)
        return first

    def _admit_stamped(self, name: str, part: CargoPart, first: int) -> None:
        values, places = self._whole(name, part.rows)
        if part.kind == "unwanted":
            self.doors.state.inputs[name].ledger.used += len(places)
            return
        t = first + self.layout.tick * places
        self.doors.inputs[name].wait(self.doors.state.inputs[name], self.doors.with_times(name, values, t), t)

    def _whole(self, port: str, rows: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Any]:
        """Rows in the declared columns, those that nobody reads NULL; and what travelled behind them."""
        assert rows is not None
        definition = self.layout.sources[self._source(port)]
        schema = definition.columns.arrow()
        columns = self.ports[port].columns if rows.num_columns > 1 or definition.time is None else ()
        known = dict(zip(columns, rows.columns, strict=False))
        arrays = [known[at] if at in known else self._nulls(len(rows), kind) for at, kind in enumerate(schema.types)]
        behind = rows.column(len(columns)).to_numpy() if definition.time is not None else None
        return pa.RecordBatch.from_arrays(arrays, schema=schema), behind

    def _nulls(self, count: int, kind: pa.DataType) -> pa.Array:
        """NULLs take as much room as values: one array stands for all columns of a type, in all parts of a batch."""
        known = self._nothing.get(kind)
        if known is None or len(known) < count:
            known = self._nothing[kind] = pa.nulls(count, kind)
        return known.slice(0, count)

    def _note_time(self, seen: Sequence[CargoPart]) -> None:
        """What time it was when the inputs were read, and which of them had nothing more."""
        now = max((p.about["now"] for p in seen if p.about["now"] is not None), default=None)
        if now is None:
            return
        spoke = {p.about["source"] for p in seen if p.about["rows_in"]}
        at_end = {p.about["source"] for p in seen if p.about["at_end"]}
        # Nobody knows how much there is of a DataFrame: where a batch has none of it, there was no more.
        quiet = at_end | self.layout.unordered
        following = [p.about["now"] for p in seen if p.about["follows"]]
        if following:
            self.doors.follow(max(following), at_end - (spoke & self.layout.unordered))
        for source in set(self.source_of.values()):
            self.doors.hear(source, now, source in spoke, now if source in quiet else None)
        self.doors.leave_idle_behind()

    def _account(self, about: dict[str, Any]) -> None:
        source = about["source"]
        known = self.state.reasons.setdefault(source, {})
        for reason, count in about["reasons"].items():
            known[reason] = known.get(reason, 0) + count
        totals = self.state.doors.seen.setdefault(source, [0, 0, 0, 0, 0])
        for i, what in enumerate(("rows_in", "late", "rejected", "ended")):
            totals[i] += int(about[what])
        totals[4] += about["leap"][2] if about["leap"] is not None else 0

    def _refuse(self, name: str, refused: Refused, out: Outgoing) -> None:
        if not self.ports[name].accounts:
            return
        source = self.source_of[name]
        definition = self.layout.sources[source]
        count_reasons(self.state.reasons.setdefault(source, {}), refused.reasons)
        out.side(refused_rows(definition.name, refused, keep_late=definition.late == "side"))

    # --- a step ------------------------------------------------------------------------------------------------------

    def _advance(self, before: int, upto: int, origin: int, parts: Sequence[CargoPart], out: Outgoing) -> None:
        """In several steps where a batch is large: what is alive at a time stays small, and near the processor."""
        if self.consumer is not None and self.consumer.begin is not None:
            origin = self.consumer.begin
        for at in self._stops(before, upto):
            holders, last_row = self.state.part.holders, self.doors.last_row
            step = Step(before, at, origin, holders, decisions=self.decisions, last_row=last_row)
            self._step(step, parts, out)
            before = at

    def _stops(self, before: int, upto: int) -> list[int]:
        """Where to step to. What others send is for one step, and so is what others are told under a holder."""
        if not self._in_slices:
            return [upto]
        waiting = [[part.t for part in state.waiting] for state in self.state.doors.inputs.values()]
        most = max(waiting, key=lambda parts: sum(map(len, parts)), default=[])
        stops: set[int] = set()
        at = SLICE_ROWS
        for times in most:
            stops.update(times[at::SLICE_ROWS].tolist())
            at = (at - len(times)) % SLICE_ROWS if at < len(times) else at - len(times)
        return [*sorted(t for t in stops if before < t < upto), upto]

    @cached_property
    def _in_slices(self) -> bool:
        if self.layout.emit_name == "latest":
            return False  # told once a batch
        sources = all(port.exchange.fragment is None for port in self.ports.values())
        return sources and not any(port.exchange.sender.open_ends for port in self._sends)

    def _step(self, step: Step, parts: Sequence[CargoPart], out: Outgoing) -> None:
        state, upto = self.state, step.upto
        released = {name: self._released(name, upto) for name in self.doors.inputs if name in self.ports}
        if self.spread is not None:
            self._step_partitions(self.spread, released, step, out)
            return
        brought: dict[str, Brought] = {name: self._come_in(self.ports[name], rows) for name, rows in released.items()}
        for name, port in self.ports.items():
            if port.exchange.fragment is not None:
                brought[name] = self._fed(name, port, parts, step)
            elif name in state.static:
                brought[name] = self._static(name, port, step)
        known = {key: state.slides[str(i)] for key, i in self.numbers.items() if str(i) in state.slides}
        given = self._stage.advance(state, brought, step, self._last_used(), known)
        self._settle_changes(released, given.unmatched, out)
        self._send(given, step, out)
        state.doors.upto = upto

    def _step_partitions(
        self, spread: Partitions, released: Mapping[str, StreamDelta], step: Step, out: Outgoing
    ) -> None:
        """As a process without Spark takes a step of many partitions."""
        state = self.state
        brought = {self._source(name): [rows] for name, rows in released.items() if len(rows)}
        for name, parts in state.static.items():
            if parts:
                rows, state.static[name] = pa.concat_batches(parts), []
                brought[self._source(name)] = [StreamDelta(rows, np.zeros(len(rows), dtype=np.int64), step.upto)]
        found = spread.advance(state.stages, brought, step, self._last_used())
        for operator, came, went in found.passed:
            counted = state.on_the_way.setdefault(str(self.numbers[id(operator)]), [0, 0])
            counted[0] += came
            counted[1] += went
        unmatched = {name: found.unmatched.get(self._source(name), no_int64s()) for name in released}
        self._settle_changes(released, unmatched, out)
        form, schema = self.layout.answers[SHARED]
        for rows in in_order(found.answers, form, schema):
            if len(rows) or form == "latest":
                out.answer(SHARED, rows)
        state.doors.upto = step.upto

    def _settle_changes(
        self, released: Mapping[str, StreamDelta], unmatched: Mapping[str, Int64s], out: Outgoing
    ) -> None:
        for name, delta in released.items():
            if isinstance(self.doors.inputs[name].definition, TableDefinition):
                refused = self.doors.settle_changes(name, delta, unmatched.get(name, no_int64s()))
                if refused is not None:
                    self._refuse(name, refused, out)

    def _send(self, given: Advanced, step: Step, out: Outgoing) -> None:
        """What goes on from here, of this fragment and of the queries that run beside it."""
        shared = self._outputs(given)
        beside = self._step_beside(shared, step)
        at_the_end = step.upto == FOREVER  # nobody asks where slides end before
        for port in self._sends:
            sender = port.exchange.sender
            if port.query == self.query:
                out.send(port, given.deltas[self.part.number[id(sender)]], self.slides() if at_the_end else {})
                continue
            output = self._consumers[port.query].input_of(sender)
            if output is not None:
                out.send(port, picked(shared[output], self._columns[port.query][output]), {})
                continue
            branch = self.beside[port.query]
            slides = branch.slides() if at_the_end else {}
            out.send(port, beside[port.query].deltas[branch.part.number[id(sender)]], slides)
        for key, advanced in ((self.query, given), *beside.items()):
            if advanced.rows is not None and (len(advanced.rows) or self.layout.emit_name == "latest"):
                out.answer(key, advanced.rows)

    def _flush(self, out: Outgoing) -> None:
        """The batch is over for the answers that are told then."""
        rows = {self.query: self._stage.flush(self.state)}
        rows |= {key: branch.stage.flush(self.state.consumers[key]) for key, branch in self.beside.items()}
        within = [partition.stage.flush(memory) for partition, memory in self._partitions(self.state)]
        if waited := [each for each in within if each is not None]:
            rows[SHARED] = merged(waited, *self.layout.answers[SHARED])
        for key, told in rows.items():
            if told is not None and len(told):
                out.answer(key, told)

    def _outputs(self, given: Advanced) -> dict[str, Delta]:
        """What is made here of what queries share, by name."""
        found: dict[str, Delta] = {}
        if self.layout.consumers and self.consumer is None:
            outputs = zip((PAIRS, *SIDES), (self.layout.root, *self.layout.root.inputs), strict=True)
            for name, operator in outputs:
                if id(operator) in self.part.number:
                    delta = given.deltas[self.part.number[id(operator)]]
                    assert isinstance(delta, Delta)
                    found[name] = delta
        return found

    def _step_beside(self, shared: Mapping[str, Delta], step: Step) -> dict[str, Advanced]:
        found: dict[str, Advanced] = {}
        for key, branch in self.beside.items():
            branch.state = self.state.consumers[key]
            pairs = picked(shared[PAIRS], self._columns[key][PAIRS])
            found[key] = branch.advance(pairs, shared, step, self._last_used())
        return found

    def _released(self, name: str, upto: int) -> StreamDelta:
        rows = self.doors.release(name, upto)
        if not self.layout.by_value(self.source_of[name]) or len(rows) < 2:
            return rows
        order = np.lexsort((value_ranks(rows.values.columns, len(rows)), rows.t))
        return StreamDelta(rows.values.take(pa.array(order)), rows.t[order], upto)

    def _come_in(self, port: Port, rows: StreamDelta) -> StreamDelta:
        return pass_way(port.exchange.way, rows, lambda *counted: self._count(port, *counted))

    def _count(self, port: Port, operator: Operator, came: int, went: int) -> None:
        """Whoever is on the way of several ports is counted once."""
        ways = (other.exchange.way for other in self.layout.ports[: self.layout.ports.index(port)])
        if not any(operator is other for way in ways for other in way):
            counted = self.state.on_the_way.setdefault(str(self.numbers[id(operator)]), [0, 0])
            counted[0] += came
            counted[1] += went

    def _last_used(self) -> int:
        """Of streams what was seen anywhere counts; it is asked for when all of it has been used."""
        last = [
            s.last_used if isinstance(self.doors.inputs[n].definition, TableDefinition) else s.greatest
            for n, s in self.state.doors.inputs.items()
        ]
        return max((t for t in last if t is not None), default=BEGINNING)

    def _fed(self, name: str, port: Port, parts: Sequence[CargoPart], step: Step) -> Brought:
        mine = [part for part in parts if part.about.get("port") == name]
        return fed(port, unpacked(mine), self.state.feeds, step, lambda *counted: self._count(port, *counted))

    def _static(self, name: str, port: Port, step: Step) -> Brought:
        parts, self.state.static[name] = self.state.static[name], []
        definition = self.layout.sources[self._source(name)]
        rows = pa.concat_batches(parts) if parts else empty_batch(definition.columns.arrow())
        return static_rows(port, rows, step, negative=self.layout.root.negative)

    # --- what goes on ------------------------------------------------------------------------------------------------

    def _pass_on(self, parts: Sequence[CargoPart], out: Outgoing) -> None:
        """The next level hears of the inputs through one bucket, and of sliding windows through every one."""
        for part in parts:
            if part.kind == "slides":
                for number, last in part.about["last"].items():
                    self.state.slides[number] = max(last, self.state.slides.get(number, last))
        first = min(number for number, level in self.layout.level.items() if level == self.level)
        if self.fragment.number == first and self.bucket == 0:
            out.to_all_above(self._seen_for_later_levels([part for part in parts if part.kind == "seen"]))

    def _seen_for_later_levels(self, seen: Sequence[CargoPart]) -> Iterator[CargoPart]:
        """All of it, of sources whose rows are judged there; of the others where time is."""
        by_source: dict[str, list[CargoPart]] = defaultdict(list)
        for part in seen:
            by_source[part.about["source"]].append(part)
        for source, parts in by_source.items():
            names = [name for name, of in self.source_of.items() if of == source]
            later = any(self.layout.level[port.fragment] > self.level for port in self.layout.ports_of(source))
            if later or any(map(self.doors.stamped, names)):
                yield from map(brief, parts)
            else:
                firsts = [first for name in names if (first := self.state.doors.inputs[name].first) is not None]
                yield from digest(parts, min(firsts, default=None))

    def slides(self) -> dict[str, int]:
        own = {str(self.numbers[key]): last for key, last in self.part.last_of_slides(self.state.part).items()}
        return dict(sorted({**self.state.slides, **own}.items()))  # whatever order cargo came in

    def _source(self, port: str) -> str:
        source = self.ports[port].exchange.source
        assert source is not None
        return source.lower()

    def _is_static(self, port: Port) -> bool:
        source = port.exchange.source
        return source is not None and self.layout.sources[source.lower()].time is None


def _place(part: CargoPart) -> tuple[int, int, str, str]:
    """Parts may come in any order; what a bucket makes of them does not depend on it."""
    about = part.about
    return about.get("sender", 0), about.get("number", 0), about.get("port", about.get("source", "")), part.kind
