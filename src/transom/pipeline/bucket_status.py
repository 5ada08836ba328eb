"""How a bucket is doing, told with every batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transom.kernels.slide_join.memory import SlideJoinState
from transom.pipeline.exhausted import Kept
from transom.pipeline.layout import SHARED
from transom.pipeline.memory import state_bytes, state_rows
from transom.pipeline.part import Part, PartState
from transom.planner.explain import title

if TYPE_CHECKING:
    from transom.pipeline.bucket import Bucket


def bucket_status(bucket: Bucket) -> dict[str, Any]:
    """What the bucket has done since the query began, as JSON can hold it.

    In `queries` is what operators have done that one of several queries has for itself.
    """
    state = bucket.state
    inputs, leaps = {}, {}
    for name in bucket.doors.inputs:
        if name in bucket.ports and bucket.ports[name].accounts:
            ledger = state.doors.inputs[name].ledger
            inputs[bucket.source_of[name]] = [ledger.used, ledger.late, ledger.rejected]
            leap = state.doors.inputs[name].leap
            if leap is not None:
                leaps[bucket.source_of[name]] = [leap.before, leap.to, leap.late]
    on_the_way = {int(number): [came, went, 0, 0.0, 0, 0] for number, (came, went) in state.on_the_way.items()}
    done = [_done(part, memory, bucket.numbers) for part, memory in bucket.hosted(state)]
    queries: dict[str, dict[str, Any]] = {
        key: {"operators": done, "rows_out": rows_out}
        for key, done, rows_out in (
            (bucket.query, _added([on_the_way, *done]), state.rows_out + sum(stage.rows_out for stage in state.stages)),
            *(
                (key, _done(branch.part, state.consumers[key].part, branch.numbers), state.consumers[key].rows_out)
                for key, branch in bucket.beside.items()
            ),
        )
    }
    slides = {
        bucket.numbers[id(operator)]: known.report.totals()
        for operator, memory in zip(bucket.part.operators, state.part.operators, strict=True)
        for known in memory
        if isinstance(known, SlideJoinState)
    }
    return {
        "fragment": bucket.fragment.number,
        "bucket": bucket.bucket,
        "inputs": inputs,
        "leaps": leaps,
        "seen": state.doors.seen,
        "reasons": state.reasons,
        **queries.pop(SHARED, {"operators": {}, "rows_out": 0}),
        "slides": slides,
        "watermarks": {bucket.source_of[name]: bucket.doors.watermark(name) for name in bucket.doors.inputs},
        "firsts": {bucket.source_of[name]: state.doors.inputs[name].first for name in bucket.doors.inputs},
        "progress": bucket.doors.progress,
        "upto": state.doors.upto,
        "wake": bucket.wake,
        "queries": queries,
    }


def _done(part: Part, state: PartState, numbers: Mapping[int, int]) -> dict[int, list[float]]:
    """By the number of an operator, what it has done and what it keeps."""
    found: dict[int, list[float]] = {}
    for operator, counters, memory in part.states(state, part.operators):
        done = [counters.rows_in, counters.rows_out, counters.ends_out, counters.seconds]
        found[numbers[id(operator)]] = [*done, state_bytes(memory), state_rows(memory)]
    return found


def _added(parts: Iterable[Mapping[int, Sequence[float]]]) -> dict[int, list[float]]:
    """What several places did, by the number of an operator."""
    found: dict[int, list[float]] = {}
    for part in parts:
        for number, done in part.items():
            found[number] = [a + b for a, b in zip(found[number], done, strict=True)] if number in found else [*done]
    return found


def kept_in(bucket: Bucket) -> list[Kept]:
    """What the operators keep in this bucket."""
    return list(_kept_in(bucket))


def _kept_in(bucket: Bucket) -> Iterator[Kept]:
    shared = len(bucket.layout.operators)  # before them, in the plan of one of several queries
    own = 0 if bucket.consumer is None else shared
    parts = [(part, memory, bucket.numbers, own) for part, memory in bucket.hosted(bucket.state)]
    for key, branch in bucket.beside.items():
        parts.append((branch.part, bucket.state.consumers[key].part, branch.numbers, shared))
    for part, state, numbers, before in parts:
        for one, memory in zip(part.operators, state.operators, strict=True):
            name = f"#{before + numbers[id(one)] + 1} {title(one.kind, one.tactic.name)}"
            yield name, state_rows(memory), state_bytes(memory)
