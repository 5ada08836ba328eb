"""What comes to one partition from outside: rows and notes of what tasks saw of the inputs, frame by frame.

Rows that tasks have read wait here behind an input gate for every channel; what the tasks saw takes the time of the
inputs on, and counts their rows. For a step the gates release what time has passed, and rows of other fragments and of
static tables are brought beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, StreamDelta, no_int64s
from transom.core.errors import CheckpointError, SourceError
from transom.core.time import BEGINNING
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.operator import Operator
from transom.pipeline.admission import BEFORE_ORIGIN, FIT, REASONS, Classified, Codes, InputGate, RejectedRows
from transom.pipeline.dead_letters import count_reasons, dead_letter_rows
from transom.pipeline.exchange import FeedState, fed, static_rows
from transom.pipeline.feed import unpacked
from transom.pipeline.frames import Frame
from transom.pipeline.input_gates import InputGates, came_after_the_end
from transom.pipeline.layout import Channel, Layout
from transom.pipeline.merge import value_ranks
from transom.pipeline.outgoing import Outgoing
from transom.pipeline.partition_state import PartitionState
from transom.pipeline.pushed_prefix import apply_prefix
from transom.pipeline.seen import brief, digest, unpacked_times
from transom.pipeline.timers import Brought
from transom.plan.catalogue import TableDefinition

_JUDGED: Final = ("rows", "unwanted", "unfit")


class PartitionInputs:
    """The inputs of a partition; what they remember is in the state of the partition that was attached last.

    `numbers` are those of operators, by their ids: rows are counted also for those that they pass on the way here.
    """

    state: PartitionState

    def __init__(self, layout: Layout, fragment: int, partition: int, numbers: Mapping[int, int]) -> None:
        self.layout = layout
        self.channels = {channel.name: channel for channel in layout.channels_into(fragment)}
        self.source_of: dict[str, str] = {}
        """By the name of an input: that of a channel, or of the source itself where its time alone is of interest."""
        gates: dict[str, InputGate] = {}
        for source, definition in layout.sources.items():
            if definition.time is None:
                continue
            # An input gate for every channel; a stream that others read has one here, too, for the sake of its time.
            channel_names = [p.name for p in layout.channels_of(source) if p.fragment == fragment] or [source]
            for name in channel_names:
                gates[name] = InputGate(definition, layout.tick, layout.origin)
                self.source_of[name] = source
        self.gates = InputGates(gates, layout.tick, layout.origin, self.source_of)
        self.heard_at: int | None = None
        """The clock when the inputs were last read, if somebody has said so."""
        self.follows = False
        """Whether the run waits for more at the end of an input."""
        self.sharing = 0
        """How many queries of the run share a memory budget."""
        self._stage_number = layout.stage_number[fragment]
        self._numbers = numbers
        self._accountant = fragment == layout.accountant and partition == 0
        self._nothing: dict[pa.DataType, pa.Array] = {}

    def feeds(self) -> dict[str, FeedState]:
        """What is remembered of other fragments before anything has come."""
        return {name: FeedState() for name, channel in self.channels.items() if channel.exchange.fragment is not None}

    def static(self) -> dict[str, list[pa.RecordBatch]]:
        """The rows of static tables before any have come."""
        return {name: [] for name, channel in self.channels.items() if self._is_static(channel)}

    def attach(self, state: PartitionState) -> None:
        """A state of the partition is used from now on."""
        self.state = state
        self.gates.state = state.gates

    @property
    def reached_times(self) -> dict[str, int]:
        """How far time has come of every source."""
        return {f"'{self.source_of[name]}'": self.gates.watermark(name) for name in self.gates.inputs}

    # --- what came ---------------------------------------------------------------------------------------------------

    def admit(self, parts: Sequence[Frame], out: Outgoing) -> None:
        """Split by split, in the order of the source."""
        rows: dict[tuple[str, int, str | None], list[Frame]] = defaultdict(list)
        for part in parts:
            if part.kind in _JUDGED:
                rows[part.about["channel"], part.about["sender"], part.about.get("source_partition")].append(part)
        seen = [part for part in parts if part.kind == "seen"]
        self.sharing = max((part.about["sharing"] for part in seen), default=0)
        self._reject_after_the_end(seen)
        for source in set(self.source_of.values()):
            of_source = {part.about["source_partition"] for part in seen if part.about["source"] == source}
            self.gates.enter(source, sorted(of_source - {None}))
        stamps: dict[tuple[str, int], int] = {}
        for name in self.gates.inputs:
            for about in (part.about for part in seen if part.about["source"] == self.source_of[name]):
                frames = rows[name, about["sender"], about["source_partition"]]
                if self.gates.stamped(name):
                    first = self._stamp(name, about, stamps)
                    for part in frames:
                        self._admit_stamped(name, part, first, out)
                    continue
                for part in frames:
                    self._admit_rows(name, part, out)
                self._begin(name, about)
                if self.source_of[name] not in self.layout.unordered:
                    self._see(name, about)
        for name in self.gates.inputs:
            for part in seen:
                if part.about["source"] == self.source_of[name] and self.source_of[name] in self.layout.unordered:
                    self._see(name, part.about)
        for channel in self.state.static:
            self.state.static[channel] += [
                self._whole(channel, p.rows)[0] for p in parts if p.about.get("channel") == channel
            ]
        self._note_time(seen)
        if self._accountant:
            for part in seen:
                self._account(part.about)

    def _reject_after_the_end(self, seen: Sequence[Frame]) -> None:
        """Time has passed the rows of an input that has ended; none may follow."""
        for name, source in self.source_of.items():
            if self.gates.state.inputs[name].ended:
                more = sum(part.about["rows_in"] for part in seen if part.about["source"] == source)
                if more:
                    raise came_after_the_end(f"stream '{self.layout.sources[source].name}'")

    def _begin(self, name: str, about: dict[str, Any]) -> None:
        """The query may begin with the earliest of the times reported that is not late."""
        if self.gates.state.origin is not None:
            return
        if about["begun"]:
            raise CheckpointError(
                "time has not begun for a part of the query of which it is said that it has",
                remedy="put the checkpoint back from one copy as a whole, or start with an empty folder",
            )
        state, times = self.gates.state.inputs[name], unpacked_times(about["firsts"])
        watermark = self.gates.inputs[name].watermark(state, about["source_partition"])
        admitted = times[times >= watermark]
        if len(admitted):
            state.begin(int(admitted[0]))
        elif about["more"] and (state.first is None or watermark < state.first):  # else it begins no earlier with them
            raise SourceError(
                f"'{self.source_of[name]}' brings so many late rows that nobody can tell where time begins",
                remedy="SET origin = '..', or allow more disorder in WATERMARK FOR",
            )

    def _see(self, name: str, about: dict[str, Any]) -> None:
        state = self.gates.state.inputs[name]
        of = about["source_partition"]
        self.gates.inputs[name].leap_to(state, about["began"], about["leap"], of)
        state.see(about["greatest"], of)
        state.ended = state.ended or about["ended"]

    def _admit_rows(self, name: str, part: Frame, out: Outgoing) -> None:
        """Rows that a filter took away on their way, and unfit ones, are here to be judged, not to be kept."""
        values, t = self._whole(name, part.rows)
        codes: Codes = np.full(len(t), FIT, dtype=np.uint8)
        if part.kind == "unfit":
            assert part.rows is not None
            codes = part.rows.columns[-1].to_numpy()
        state = self.gates.state.inputs[name]
        if part.kind == "unwanted":
            state = replace(state, waiting=[])
        first = state.first
        of = part.about.get("source_partition")
        rejected_rows = self.gates.inputs[name].admit(state, Classified(values, t, codes, None), of)
        state.first = first  # what the tasks saw decides, not what came here of it
        state.ledger.rows_in -= len(t)  # counted where all of it is
        if part.kind == "unwanted":
            unwanted = sum(len(waiting.t) for waiting in state.waiting)
            state.ledger.used += unwanted
            self._count(self.channels[name], self.channels[name].exchange.prefix[0], unwanted, 0)
        if rejected_rows is not None:
            self.reject(name, rejected_rows, out)

    def _stamp(self, name: str, about: dict[str, Any], stamps: dict[tuple[str, int], int]) -> int:
        """The first stamp of a split, the same for all input gates of its stream."""
        source, state = self.source_of[name], self.gates.state.inputs[name]
        state.ended = state.ended or about["ended"]
        if (source, about["sender"]) not in stamps:
            stamps[source, about["sender"]] = self.gates.stamp(about["rows_in"], about["now"] or 0)
        first = stamps[source, about["sender"]]
        if about["rows_in"]:
            state.begin(first)
            state.see(self.gates.state.clock)
        return first

    def _admit_stamped(self, name: str, part: Frame, first: int, out: Outgoing) -> None:
        values, indexes = self._whole(name, part.rows)
        t = first + self.layout.tick * indexes
        values = self.gates.with_times(name, values, t)
        gate, state = self.gates.inputs[name], self.gates.state.inputs[name]
        early = gate.before_origin(t)
        if early:
            state.ledger.rejected += early
            self.reject(name, RejectedRows(values.slice(0, early), [REASONS[BEFORE_ORIGIN]] * early), out)
        if part.kind == "unwanted":
            state.ledger.used += len(t) - early
            return
        gate.wait(state, values.slice(early), t[early:])

    def _whole(self, channel: str, rows: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Any]:
        """Rows in the declared columns, those that nobody reads NULL; and what travelled behind them."""
        assert rows is not None
        definition = self.layout.sources[self.source(channel)]
        schema = definition.columns.held()
        columns = self.channels[channel].columns if rows.num_columns > 1 or definition.time is None else ()
        column_at = dict(zip(columns, rows.columns, strict=False))
        arrays = [
            column_at[at] if at in column_at else self._nulls(len(rows), kind) for at, kind in enumerate(schema.types)
        ]
        behind = rows.column(len(columns)).to_numpy() if definition.time is not None else None
        return pa.RecordBatch.from_arrays(arrays, schema=schema), behind

    def _nulls(self, count: int, kind: pa.DataType) -> pa.Array:
        """NULLs take as much room as values: one array stands for all columns of a type, in all parts of a batch."""
        nulls = self._nothing.get(kind)
        if nulls is None or len(nulls) < count:
            nulls = self._nothing[kind] = pa.nulls(count, kind)
        return nulls.slice(0, count)

    def _note_time(self, seen: Sequence[Frame]) -> None:
        """What time it was when the inputs were read, and which of them had nothing more."""
        now = max((p.about["now"] for p in seen if p.about["now"] is not None), default=None)
        self.heard_at, self.follows = now, any(p.about["follows"] for p in seen)
        if now is None:
            return
        spoke = {p.about["source"] for p in seen if p.about["rows_in"]}
        at_end = {p.about["source"] for p in seen if p.about["at_end"] and p.about["source_partition"] is None}
        # Nobody knows how much there is of a DataFrame: where a batch has none of it, there was no more.
        quiet = at_end | self.layout.unordered
        following = [p.about["now"] for p in seen if p.about["follows"]]
        if following:
            self.gates.follow(max(following), at_end - (spoke & self.layout.unordered))
        for source in set(self.source_of.values()):
            self.gates.hear(source, now, source in spoke, now if source in quiet else None)
        of_partitions: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for about in (p.about for p in seen if p.about["source_partition"] is not None):
            of_partitions[about["source"], about["source_partition"]].append(about)
        for of, abouts in of_partitions.items():
            polled_at = now if any(about["at_end"] for about in abouts) else None
            self.gates.hear_partition(*of, now, any(about["rows_in"] for about in abouts), polled_at)
        self.gates.leave_idle_behind()

    def _account(self, about: dict[str, Any]) -> None:
        source = about["source"]
        counts = self.state.reasons.setdefault(source, {})
        for reason, count in about["reasons"].items():
            counts[reason] = counts.get(reason, 0) + count
        totals = self.state.gates.seen.setdefault(source, [0, 0, 0, 0, 0])
        for i, what in enumerate(("rows_in", "late", "rejected", "ended")):
            totals[i] += int(about[what])
        totals[4] += about["leap"][2] if about["leap"] is not None else 0

    def seen_for_later_stages(self, seen: Sequence[Frame]) -> Iterator[Frame]:
        """All of it, of sources whose rows are judged there; of the others where time is."""
        by_source: dict[str, list[Frame]] = defaultdict(list)
        for part in seen:
            by_source[part.about["source"]].append(part)
        for source, parts in by_source.items():
            names = [name for name, of in self.source_of.items() if of == source]
            later = any(
                self.layout.stage_number[channel.fragment] > self._stage_number
                for channel in self.layout.channels_of(source)
            )
            if later or any(map(self.gates.stamped, names)):
                yield from map(brief, parts)
            else:
                firsts = [first for name in names if (first := self.state.gates.inputs[name].first) is not None]
                yield from digest(parts, min(firsts, default=None))

    # --- what a step is given ----------------------------------------------------------------------------------------

    def released(self, frontier: int) -> dict[str, StreamDelta]:
        """By channel the rows that time has passed."""
        return {name: self._released(name, frontier) for name in self.gates.inputs if name in self.channels}

    def come_in(self, released: Mapping[str, StreamDelta]) -> dict[str, Brought]:
        """The same rows, past the operators that they pass on the way."""
        return {name: self._come_in(self.channels[name], rows) for name, rows in released.items()}

    def brought(self, released: Mapping[str, StreamDelta], parts: Sequence[Frame], step: Step) -> dict[str, Brought]:
        """All that comes to a step: these rows, what other fragments sent, and static tables."""
        brought = self.come_in(released)
        for name, channel in self.channels.items():
            if channel.exchange.fragment is not None:
                brought[name] = self._fed(name, channel, parts, step)
            elif name in self.state.static:
                brought[name] = self._static(name, channel, step)
        return brought

    def settle_changes(
        self, released: Mapping[str, StreamDelta], unmatched: Mapping[str, Int64s], out: Outgoing
    ) -> None:
        """Changes of tables that met no row are rejected; what the others were is known now."""
        for name, delta in released.items():
            if isinstance(self.gates.inputs[name].definition, TableDefinition):
                rejected_rows = self.gates.settle_changes(name, delta, unmatched.get(name, no_int64s()))
                if rejected_rows is not None:
                    self.reject(name, rejected_rows, out)

    def reject(self, name: str, rejected_rows: RejectedRows, out: Outgoing) -> None:
        """Counted and sent to the sink, once for all channels of a source."""
        if not self.channels[name].accounts:
            return
        source = self.source_of[name]
        definition = self.layout.sources[source]
        count_reasons(self.state.reasons.setdefault(source, {}), rejected_rows.reasons)
        out.dead_letters(dead_letter_rows(definition, rejected_rows))

    def last_used(self) -> int:
        """The time of the last row used; of streams what was seen anywhere counts, as all of it is used by then."""
        last = [
            s.last_used if isinstance(self.gates.inputs[n].definition, TableDefinition) else s.greatest
            for n, s in self.state.gates.inputs.items()
        ]
        return max((t for t in last if t is not None), default=BEGINNING)

    def _released(self, name: str, frontier: int) -> StreamDelta:
        rows = self.gates.release(name, frontier)
        if not self.layout.by_value(self.source_of[name]) or len(rows) < 2:
            return rows
        order = np.lexsort((value_ranks(rows.values.columns, len(rows)), rows.t))
        return StreamDelta(rows.values.take(pa.array(order)), rows.t[order], frontier)

    def _come_in(self, channel: Channel, rows: StreamDelta) -> StreamDelta:
        return apply_prefix(channel.exchange.prefix, rows, lambda *counted: self._count(channel, *counted))

    def _count(self, channel: Channel, operator: Operator, came: int, went: int) -> None:
        """Whoever is in the pushed-down prefix of several channels is counted once."""
        prefixes = (other.exchange.prefix for other in self.layout.channels[: self.layout.channels.index(channel)])
        if not any(operator is other for prefix in prefixes for other in prefix):
            counted = self.state.in_prefix.setdefault(str(self._numbers[id(operator)]), [0, 0])
            counted[0] += came
            counted[1] += went

    def _fed(self, name: str, channel: Channel, parts: Sequence[Frame], step: Step) -> Brought:
        frames = [part for part in parts if part.about.get("channel") == name]
        return fed(channel, unpacked(frames), self.state.feeds, step, lambda *counted: self._count(channel, *counted))

    def _static(self, name: str, channel: Channel, step: Step) -> Brought:
        parts, self.state.static[name] = self.state.static[name], []
        definition = self.layout.sources[self.source(name)]
        rows = pa.concat_batches(parts) if parts else empty_batch(definition.columns.held())
        return static_rows(channel, rows, step, negative=self.layout.root.negative)

    def source(self, channel: str) -> str:
        """The name of the source whose rows come through a channel."""
        source = self.channels[channel].exchange.source
        assert source is not None
        return source.lower()

    def _is_static(self, channel: Channel) -> bool:
        source = channel.exchange.source
        return source is not None and self.layout.sources[source.lower()].time is None
