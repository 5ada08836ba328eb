"""What queries on one join remember, migrated when queries come or go between two steps.

Queries that stay keep what they have, byte for byte: nothing in it says who else is there. The join alone is another
one then, with the columns and the widest windows of those that are there; `migrated` takes its memory along. A query
that comes begins with nothing but the time that has been reached.

In partitions nothing moves from one to another: the join is spread by all its keys whoever is there, and a fragment of
a query is the same partitions in every layout, known by the key of the query and its number there (`Layout.names`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transom.kernels.join.join import JoinState
from transom.kernels.operator import Operator
from transom.kernels.shared_join.carry import KeptSide, carried
from transom.kernels.shared_join.node import SharedJoin
from transom.pipeline.admission import Ledger
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.layout import SHARED, Layout
from transom.pipeline.part import Part, PartState
from transom.pipeline.partition_state import PartitionState
from transom.pipeline.scheduled_state import ScheduledMemory
from transom.plan.algebra import Window
from transom.planner.sharing import length_of

PartitionId = tuple[int, int]
"""A fragment and a partition of it."""


@dataclass
class KeptNote:
    """What a side of the join keeps: indexes of columns, and for how long; None: it counts its rows."""

    indexes: list[int]
    length: int | None


def kept_by(subplan: Operator) -> list[KeptNote]:
    """What a join keeps of each side; nothing to note of a plan that is none, and stays as it is."""
    if not isinstance(subplan.node, SharedJoin):
        return []
    notes = []
    for indexes, window in zip(subplan.node.side_columns, subplan.inputs, strict=True):
        node = window.node
        notes.append(KeptNote(list(indexes), length_of(node.spec) if isinstance(node, Window) else None))
    return notes


def migrated(was: PartState, kept: Sequence[KeptNote], subplan: Operator, part: Part) -> PartState:
    """The memory of operators of a join that kept this, for the same operators, `part`, of the join that there is now.

    Joins that queries share have the same operators in one order, whoever is there. Of these the join itself remembers
    rows, and a window that counts them; one by time remembers nothing.
    """
    if not isinstance(subplan.node, SharedJoin):
        return was
    new = part.start().operators
    for i, operator in enumerate(part.operators):
        if operator is subplan:
            (join,) = was.operators[i]
            assert isinstance(join, JoinState)
            before = [KeptSide(tuple(side.indexes), (), side.length) for side in kept]
            after = [
                KeptSide(tuple(side.indexes), tuple(window.schema.held().types), side.length)
                for side, window in zip(kept_by(subplan), subplan.inputs, strict=True)
            ]
            new[i] = [carried(join, before, after)]
        for note, window in zip(kept, subplan.inputs, strict=True):
            if operator is window and note.length is None:
                new[i] = was.operators[i]
    return PartState(new, was.counters, was.open_ids)


def migrated_partition(old: FragmentPartition, layout: Layout) -> tuple[PartitionId, PartitionState] | None:
    """Where a partition goes on, and with what; None where its query has left."""
    name = old.layout.names[old.fragment.number]
    number = layout.numbers.get(name)
    if number is None:
        return None
    state = old.state
    if name[0] == SHARED:
        new = FragmentPartition(layout, number, old.partition)
        assert new.inputs.source_of == old.inputs.source_of, "the same rows come to it as before"
        if new.scheduled is not None and new.state.scheduled:
            state = replace(state, scheduled=[_migrated_work(old, new)])
            part = state.part
        else:
            part = migrated(state.part, kept_by(old.layout.root), layout.root, new.part)
        consumers = {key: state.consumers.get(key, fresh) for key, fresh in new.state.consumers.items()}
        routes = {channel: state.routes.get(channel, fresh) for channel, fresh in new.state.routes.items()}
        state = replace(state, part=part, consumers=consumers, routes=routes)
    return (number, old.partition), state


def _migrated_work(old: FragmentPartition, new: FragmentPartition) -> ScheduledMemory:
    """What is put in order goes on with other queries; what waited for those before is done first."""
    assert new.scheduled is not None
    (memory,) = old.state.scheduled
    new.scheduled.begin(new.state.scheduled[0], None)
    new.scheduled.take_over(memory, [note.indexes for note in kept_by(old.layout.root)], old.state.gates.frontier)
    return replace(memory, join=new.scheduled.join.work.state)


def begun_partitions(old: Layout, new: Layout, like: FragmentPartition) -> dict[PartitionId, PartitionState]:
    """The memories of partitions that were not there before: they know how far time has come, as every old one does."""
    gates = like.state.gates
    gates_of_source = {source: gates.inputs[name] for name, source in like.inputs.source_of.items()}
    states: dict[PartitionId, PartitionState] = {}
    for name, number in new.numbers.items():
        for partition in range(0 if name in old.numbers else new.partitions_of(number)):
            fresh = FragmentPartition(new, number, partition)
            inputs = {
                channel: replace(
                    gates_of_source[source],
                    waiting=[],
                    ledger=Ledger(),
                    partitions={name: replace(mark) for name, mark in gates_of_source[source].partitions.items()},
                )
                for channel, source in fresh.inputs.source_of.items()
            }
            states[number, partition] = replace(fresh.state, gates=replace(gates, inputs=inputs, seen={}))
    return states
