"""How a partition is doing, reported with every batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transom.kernels.changing import ChangingState
from transom.kernels.slide_join.memory import SlideJoinState
from transom.pipeline.exhausted import Kept
from transom.pipeline.layout import SHARED
from transom.pipeline.memory import state_bytes, state_rows
from transom.pipeline.part import Part, PartState
from transom.pipeline.scheduled_state import ScheduledMemory
from transom.planner.explain import title

if TYPE_CHECKING:
    from transom.pipeline.fragment_partition import FragmentPartition


def partition_status(partition: FragmentPartition) -> dict[str, Any]:
    """What the partition has done since the query began, as JSON can hold it.

    In `queries` is what operators have done that one of several queries has for itself.
    """
    state, gates, source_of = partition.state, partition.inputs.gates, partition.inputs.source_of
    inputs, leaps = {}, {}
    for name in gates.inputs:
        if name in partition.inputs.channels and partition.inputs.channels[name].accounts:
            ledger = state.gates.inputs[name].ledger
            inputs[source_of[name]] = [ledger.used, ledger.late, ledger.rejected]
            leap = state.gates.inputs[name].leap
            if leap is not None:
                leaps[source_of[name]] = [leap.before, leap.to, leap.late]
    in_prefix = {int(number): [came, went, 0, 0.0, 0, 0] for number, (came, went) in state.in_prefix.items()}
    done = [_done(part, memory, partition.numbers) for part, memory in partition.hosted(state)]
    done += [{partition.numbers[id(partition.layout.root)]: _scheduled(each)} for each in state.scheduled]
    queries: dict[str, dict[str, Any]] = {
        key: {"operators": done, "rows_out": rows_out}
        for key, done, rows_out in (
            (
                partition.query,
                _added([in_prefix, *done]),
                state.rows_out + sum(stage.rows_out for stage in state.stages),
            ),
            *(
                (key, _done(runner.part, state.consumers[key].part, runner.numbers), state.consumers[key].rows_out)
                for key, runner in partition.beside.items()
            ),
        )
    }
    slides = {
        partition.numbers[id(operator)]: kernel_state.reported().totals()
        for operator, memory in zip(partition.part.operators, state.part.operators, strict=True)
        for kernel_state in memory
        if isinstance(kernel_state, SlideJoinState)
    }
    changes: dict[int, list[list[str]]] = {}
    for part, hosted in partition.hosted(state):
        for operator, memory in zip(part.operators, hosted.operators, strict=True):
            lines = [kernel_state.lines() for kernel_state in memory if isinstance(kernel_state, ChangingState)]
            if lines:
                changes.setdefault(partition.numbers[id(operator)], []).extend(lines)
    return {
        "fragment": partition.fragment.number,
        "partition": partition.partition,
        "inputs": inputs,
        "leaps": leaps,
        "seen": state.gates.seen,
        "reasons": state.reasons,
        **queries.pop(SHARED, {"operators": {}, "rows_out": 0}),
        "slides": slides,
        "changes": changes,
        "watermarks": {source_of[name]: gates.watermark(name) for name in gates.inputs},
        "firsts": {source_of[name]: state.gates.inputs[name].first for name in gates.inputs},
        "progress": gates.progress,
        "frontier": state.gates.frontier,
        "wake": partition.wake,
        "queries": queries,
        "scheduled": None if partition.scheduled is None else partition.scheduled.status(gates),
    }


def _scheduled(memory: ScheduledMemory) -> list[float]:
    """What a join has done whose work is put in order, and what it keeps."""
    counters, kept = memory.counters, memory.join
    done = [counters.rows_in, counters.rows_out, counters.ends_out, counters.seconds]
    return [*done, state_bytes(kept), state_rows(kept)]


def _done(part: Part, state: PartState, numbers: Mapping[int, int]) -> dict[int, list[float]]:
    """By the number of an operator, what it has done and what it keeps."""
    counts: dict[int, list[float]] = {}
    for operator, counters, memory in part.states(state, part.operators):
        done = [counters.rows_in, counters.rows_out, counters.ends_out, counters.seconds]
        counts[numbers[id(operator)]] = [*done, state_bytes(memory), state_rows(memory)]
    return counts


def _added(parts: Iterable[Mapping[int, Sequence[float]]]) -> dict[int, list[float]]:
    """What several places did, by the number of an operator."""
    totals: dict[int, list[float]] = {}
    for part in parts:
        for number, done in part.items():
            totals[number] = [a + b for a, b in zip(totals[number], done, strict=True)] if number in totals else [*done]
    return totals


def kept_in(partition: FragmentPartition) -> list[Kept]:
    """What the operators keep in this partition."""
    return list(_kept_in(partition))


def _kept_in(partition: FragmentPartition) -> Iterator[Kept]:
    shared = len(partition.layout.operators)  # before them, in the plan of one of several queries
    own = 0 if partition.consumer is None else shared
    parts = [(part, memory, partition.numbers, own) for part, memory in partition.hosted(partition.state)]
    for key, runner in partition.beside.items():
        parts.append((runner.part, partition.state.consumers[key].part, runner.numbers, shared))
    for part, state, numbers, before in parts:
        for operator, memory in zip(part.operators, state.operators, strict=True):
            name = f"#{before + numbers[id(operator)] + 1} {title(operator.kind, operator.tactic.name)}"
            yield name, state_rows(memory), state_bytes(memory)
