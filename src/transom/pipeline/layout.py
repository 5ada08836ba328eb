"""A plan laid out over partitions: which fragment runs where, and which way rows take.

Fragments that are fed by sources alone are in stage 1, the others one stage above the highest that feeds them. All
fragments of a stage run side by side. In one partition nothing has to move, and the plan is one fragment. Rows come in
through **channels**: channel "2.0" is the first exchange of fragment 2.

A plan that several queries share is laid out by itself, and then the fragments of each of these **consumers** that are
above it. Numbers of fragments are those of one layout; what is remembered knows fragments, channels and operators by
what they are called in their own query, whoever else is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from transom.kernels.operator import Operator, scanned
from transom.kernels.shared_join.node import SharedJoin
from transom.kernels.slide_join.node import SlideJoin
from transom.pipeline.answer import held_output, meeting_columns, output_form, output_key, output_schema
from transom.pipeline.consumer import PAIRS, Consumer, outputs_of
from transom.plan.algebra import StreamScan, TableScan
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.options import time_settings
from transom.planner.columns_read import columns_read
from transom.planner.final import seen_at_the_end
from transom.planner.fingerprint import fingerprint
from transom.planner.fragments import Exchange, Fragment, fragments, kept_together
from transom.planner.scheduling import Schedule, schedule_of
from transom.planner.slide_join import check_share

SINK: Final = 0
"""The number that stands for the end of the way, where fragments begin at 1."""

SHARED: Final = ""
"""Stands for the key of a query before what all of them share, and where there is one query."""

Name = tuple[str, int]
"""The key of a query, and the number of one of its fragments."""

Definition = StreamDefinition | TableDefinition


@dataclass(frozen=True)
class Channel:
    """An exchange: where it leads. Of a source `columns` are sent; one channel of every source `accounts` for its rows.

    Its name is unique among those of its `query`.
    """

    name: str
    query: str
    fragment: int
    exchange: Exchange
    columns: tuple[int, ...] = ()
    accounts: bool = False

    @property
    def called(self) -> str:
        """A name that it has in every layout, unique in all of one."""
        return f"{self.query} {self.name}"


@dataclass(frozen=True)
class Layout:
    """A query over `partitions` partitions. Equal layouts lay out the same query in the same way.

    Rows of the sources in `unordered` come in no order: they are late by what the batches before have brought, and rows
    of one instant count in the order of their values.

    A plan in one partition may be spread over `threads` partitions within its process (`spread`).

    Where there are `consumers`, the plan is a join that they share, and the answers are theirs. To an `open` one
    queries may come, and others leave it: what comes to it of the sources does not depend on who is there.
    """

    root: Operator
    catalogue: Catalogue
    emit: str
    partitions: int
    unordered: frozenset[str] = frozenset()
    open: bool = False
    consumers: tuple[Consumer, ...] = ()
    threads: int = 1

    def __post_init__(self) -> None:
        self.check_budget(1)

    def check_budget(self, sharing: int) -> bool:
        """Whether a memory budget is kept to, which so many queries are to share: it is that of a machine, which may
        host all partitions. An error where a part would be too small."""
        nodes = [operator for operator in self.root.walk() if isinstance(operator.node, SlideJoin)]
        for operator in nodes:
            assert isinstance(operator.node, SlideJoin)
            check_share(operator.node, self.partitions if operator.needs[0].kind == "keys" else 1, sharing)
        return any(isinstance(operator.node, SlideJoin) and operator.node.memory is not None for operator in nodes)

    @cached_property
    def emit_name(self) -> str:
        return output_form(self.root, self.emit)

    @cached_property
    def output_schema(self) -> pa.Schema:
        return output_schema(self.emit_name, self.root.schema)

    @cached_property
    def output_key(self) -> tuple[str, ...] | None:
        return output_key(self.root, self.emit)

    @cached_property
    def answers(self) -> dict[str, tuple[str, pa.Schema]]:
        """By the key of a query, the form of its answer and its columns as they are held."""
        if not self.consumers:
            return {SHARED: (self.emit_name, held_output(self.emit_name, self.root.schema))}
        return {each.spec.name: (each.emit_name, each.held_output) for each in self.consumers}

    @cached_property
    def shown(self) -> dict[str, pa.Schema]:
        """By the key of a query, the columns of its answer as people see it."""
        if not self.consumers:
            return {SHARED: self.output_schema}
        return {each.spec.name: each.output_schema for each in self.consumers}

    @cached_property
    def finals(self) -> Mapping[int, str]:
        """Operators, by their ids, of which the answer shows less than they could give, and in which form."""
        exchanges = [exchange for fragment in self.fragments for exchange in fragment.exchanges]
        moved = {id(exchange.sender) for exchange in exchanges if exchange.fragment is not None}
        return {} if self.consumers else seen_at_the_end(self.root, self.emit, moved)

    @cached_property
    def fragments(self) -> list[Fragment]:
        meeting = None if self.consumers else meeting_columns(self.root, self.emit)
        all_fragments = fragments(self.root, meeting, whole=self.partitions == 1)
        made_in = self._made_in(all_fragments) if self.consumers else {}
        for consumer in self.consumers:
            all_fragments += _numbered(consumer, consumer.above(self.partitions), len(all_fragments) + 1, made_in)
        return all_fragments

    def _made_in(self, all_fragments: list[Fragment]) -> dict[str, int]:
        """By the name of an output of the shared plan, the number of the fragment that makes it."""
        return {
            name: next(part.number for part in all_fragments if any(operator is each for each in part.operators))
            for name, operator in outputs_of(self.root).items()
        }

    @cached_property
    def names(self) -> dict[int, Name]:
        """By the number of a fragment, what it is called in every layout that its query is in."""
        own = len(self.fragments) - sum(len(consumer.above(self.partitions)) for consumer in self.consumers)
        names = [(SHARED, number) for number in range(1, own + 1)]
        names += [(each.spec.name, part.number) for each in self.consumers for part in each.above(self.partitions)]
        return dict(enumerate(names, 1))

    @cached_property
    def numbers(self) -> dict[Name, int]:
        return {name: number for number, name in self.names.items()}

    def consumer_of(self, fragment: int) -> Consumer | None:
        """The query that alone has a fragment."""
        key, _ = self.names[fragment]
        return next((consumer for consumer in self.consumers if consumer.spec.name == key), None)

    @cached_property
    def spread(self) -> Layout | None:
        """How the only partition of a plan lays it out over partitions of its own; None where they would have no work.

        An input that comes in through several channels is read there by each of them, and here it would come once.
        """
        if self.threads == 1 or self.partitions > 1 or self.consumers or kept_together(self.root) is not None:
            return None
        if any(len(self.channels_of(source)) > 1 for source in self.sources):
            return None
        return Layout(self.root, self.catalogue, self.emit, self.threads, self.unordered)

    @cached_property
    def schedule(self) -> Schedule | None:
        """How the work of the join is put in order; only where all of it is in one partition can it be."""
        if self.partitions > 1 or not isinstance(self.root.node, SharedJoin) or not self.consumers:
            return None
        schedule = schedule_of(self.consumers[0].spec.of_join, self.consumers[0].catalogue, batches=True)
        return schedule if isinstance(schedule, Schedule) else None

    @cached_property
    def tick(self) -> int:
        return time_settings(self.catalogue).tick

    @cached_property
    def origin(self) -> int | None:
        return time_settings(self.catalogue).origin

    @cached_property
    def operators(self) -> list[Operator]:
        """The operators of the plan in the order of EXPLAIN."""
        return list(self.root.walk())

    @cached_property
    def puts_off(self) -> bool:
        """Whether slides may be left for later in any step."""
        return any(isinstance(o.node, SlideJoin) and o.node.put_off is not None for o in self.operators)

    @cached_property
    def stage_number(self) -> dict[int, int]:
        """The stage that each fragment is in, by the number of the fragment."""
        numbers: dict[int, int] = {}
        for fragment in self.fragments:
            feeding = [numbers[e.fragment] for e in fragment.exchanges if e.fragment is not None]
            numbers[fragment.number] = 1 + max(feeding, default=0)
        return numbers

    @cached_property
    def stage_count(self) -> int:
        return max(self.stage_number.values())

    def partitions_of(self, fragment: int) -> int:
        return 1 if self.fragments[fragment - 1].partitioning.kind == "single" else self.partitions

    @cached_property
    def sources(self) -> dict[str, Definition]:
        """Streams and tables that the query reads."""
        scans = [o for o in self.operators if isinstance(o.node, StreamScan | TableScan)]
        definitions: dict[str, Definition] = {}
        for name in map(scanned, scans):
            definition = self.catalogue.relations[name]
            assert isinstance(definition, StreamDefinition | TableDefinition)
            definitions[name] = definition
        return definitions

    @cached_property
    def channels(self) -> list[Channel]:
        channels: list[Channel] = []
        accounted: set[str] = set()
        for fragment in self.fragments:
            query, number = self.names[fragment.number]
            for i, exchange in enumerate(fragment.exchanges):
                name = f"{number}.{i}"
                if exchange.source is None:
                    channels.append(Channel(name, query, fragment.number, exchange))
                    continue
                source = exchange.source.lower()
                accounts = source not in accounted
                channels.append(Channel(name, query, fragment.number, exchange, self._read(source), accounts))
                accounted.add(source)
        return channels

    def channels_of(self, source: str) -> list[Channel]:
        return [p for p in self.channels if p.exchange.source is not None and p.exchange.source.lower() == source]

    def channels_from(self, fragment: int) -> list[Channel]:
        return [channel for channel in self.channels if channel.exchange.fragment == fragment]

    def channels_into(self, fragment: int) -> list[Channel]:
        return [channel for channel in self.channels if channel.fragment == fragment]

    @cached_property
    def accountant(self) -> int:
        """The fragment whose first partition counts what was rejected before any partition saw it."""
        return min(number for number, stage_number in self.stage_number.items() if stage_number == 1)

    @cached_property
    def fingerprint(self) -> str:
        """Names the plan and its layout; state of another one is rejected."""
        settings: list[object] = [self.emit_name, self.tick, self.origin, self.partitions, sorted(self.unordered)]
        settings += ["open"] if self.open else []
        settings += [] if self.schedule is None else [["schedule", *astuple(self.schedule)]]
        settings += [["threads", self.threads]] if self.spread is not None else []
        settings += [(each.spec.name, each.fingerprint, each.begin) for each in self.consumers]
        return fingerprint(self.operators, *settings)

    def by_value(self, source: str) -> bool:
        """Whether the order of rows of one instant has to be made: somebody counts them, and they have none."""
        return source in self.unordered and self._rows_are_counted

    @cached_property
    def _rows_are_counted(self) -> bool:
        return any(operator.tactic.counts_rows(operator) for operator in self.operators)

    def as_scanned(self, source: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows in the columns of the relation: a table may have one beside them that reports the change."""
        definition = self.sources[source]
        if isinstance(definition, StreamDefinition):
            return rows
        names = [column.name for column in definition.columns]
        return rows.select([names.index(column.name) for column in definition.relation_columns])

    def _read(self, source: str) -> tuple[int, ...]:
        """The columns that are sent on: those that are read, and all where somebody may yet want to see a row."""
        definition = self.sources[source]
        if (
            self.open
            or definition.late == "dead_letter"
            or isinstance(definition, TableDefinition)
            or self.by_value(source)
        ):
            return tuple(range(len(definition.columns)))
        return tuple(columns_read(self.root, source))


def _numbered(consumer: Consumer, above: Sequence[Fragment], first: int, made_in: Mapping[str, int]) -> list[Fragment]:
    """The fragments that a query alone has, numbered from `first` on."""
    numbers = {part.number: first + i for i, part in enumerate(above)}

    def fed_by(exchange: Exchange) -> int:
        output = consumer.input_of(exchange.sender)
        if output is None and exchange.fragment in numbers:
            return numbers[exchange.fragment]
        return made_in[output or PAIRS]  # what runs beside the join is where the pairs are made

    return [
        replace(
            part,
            number=numbers[part.number],
            exchanges=tuple(replace(each, fragment=fed_by(each)) for each in part.exchanges),
        )
        for part in above
    ]
